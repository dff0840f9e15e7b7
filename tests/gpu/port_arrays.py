# SPDX-License-Identifier: Apache-2.0
"""What CuPy, PyTorch and Numba do with the buffers of a port in pinned memory. For a machine with a GPU.

    python tests/gpu/port_arrays.py     with the nanet that this Python imports, which must have GPU code

Needs no test framework. Prints a line for each check that failed, which libraries were there, and `N passed, M failed`. Exit 1 if
one failed; 0 without a GPU or without GPU code, and then it says how many checks did not run.
"""

from __future__ import annotations

import importlib
import os
import socket
import subprocess
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import nanet
import numpy as np
from nanet import _core, wire
from nanet.config.emulator import EmulatorConfig
from nanet.machine.gpu_driver import ask_driver
from nanet.port.arrays import CPU, CUDA, CUDA_HOST, host_bytes
from nanet.run import emulate

EXAMPLE = Path(__file__).parents[2] / "examples" / "gpu_port.py"
LIBRARIES = {"CuPy": "cupy", "PyTorch": "torch", "Numba": "numba.cuda"}
SPIN_CYCLES = 100_000_000  # tens of milliseconds of a GPU: longer than a host takes to come to the next line
TEXT = bytes(range(64))

Check = Callable[[], None]
CHECKS: list[tuple[str, Check]] = []  # library ("": none), check


def check(library: str = "") -> Callable[[Check], Check]:
    """Marks a check, and the library that it needs."""

    def mark(function: Check) -> Check:
        CHECKS.append((library, function))
        return function

    return mark


class Rig:
    """A port in pinned memory, somebody who sends to it, and somebody who receives from it."""

    def __init__(self, port: nanet.Port, out: socket.socket, back: socket.socket) -> None:
        self.port, self.out, self.back = port, out, back

    def completion(self, payload: bytes = TEXT) -> nanet.Completion:
        self.out.send(payload)
        completion = self.port.poll(5.0)
        assert completion is not None
        return completion

    def echo(self, payload: Any) -> bytes:
        """What arrives when `payload` is sent."""
        assert self.port.send(f"udp://127.0.0.1:{self.back.getsockname()[1]}", payload)
        return self.back.recv(65536)


def free_port() -> int:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


@contextmanager
def rig(**options: Any) -> Iterator[Rig]:
    number = free_port()
    with (
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as out,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as back,
        nanet.open(f"udp://127.0.0.1:{number}", memory="host_pinned", **options) as port,
    ):
        out.connect(("127.0.0.1", number))
        back.bind(("127.0.0.1", 0))
        back.settimeout(5)
        yield Rig(port, out, back)


def refused(function: Callable[[], object], error: type[Exception], text: str) -> None:
    said = ""
    try:
        function()
    except error as caught:
        said = str(caught)
    assert text in said, said or f"not refused: {text}"


# --- without a library ---


@check()
def the_host_sees_it_too() -> None:
    for huge_pages in (False, True):
        with rig(huge_pages=huge_pages) as r, r.completion() as completion:
            assert completion.buffer[:64].tobytes() == TEXT
            assert completion.__dlpack_device__() == (CUDA_HOST, 0)
            assert np.shares_memory(np.from_dlpack(completion), completion.buffer)
            assert np.shares_memory(np.from_dlpack(completion, device="cpu"), completion.buffer)
            assert completion.device_buffer.__dlpack_device__() == (CUDA, r.port.device_index)
            refused(lambda c=completion: c.__dlpack__(dl_device=(CUDA, 99)), BufferError, "does not see the buffer")
            completion.__dlpack__(dl_device=(CPU, 0))


@check()
def an_address_of_the_gpu_leads_back_to_the_host() -> None:
    with rig() as r:
        for _ in range(3):  # the second and third buffer too, which begin inside the registered memory
            completion = r.completion()
            assert np.shares_memory(np.asarray(host_bytes(completion.device_buffer)), completion.buffer)
        assert r.echo(completion.device_buffer)[:64] == TEXT
        assert completion.device_buffer.shape == (completion.bytes,)
        index = host_bytes(completion.device_index).view(np.uint32).reshape(-1, 2)
        assert index[:, 0].tolist() == completion.index["offset"].tolist()
        assert (index[:, 1] & 0xFFFF).tolist() == completion.index["bytes"].tolist()


@check()
def nothing_is_given_after_release() -> None:
    with rig() as r:
        completion = r.completion()
        kept = completion.device_buffer
        completion.release()
        for late in (
            lambda: completion.device_buffer, lambda: completion.device_index, lambda: kept.__cuda_array_interface__,
            lambda: kept.address, lambda: kept.__dlpack__(), lambda: r.port.send("udp://127.0.0.1:9", kept),
        ):  # fmt: skip
            refused(late, ValueError, "was released")


@check()
def many_buffers_wrap_around() -> None:
    with rig(buffer_count=2, buffer_bytes=65536) as r:
        for number in range(200):
            with r.completion(bytes([number]) * 8) as completion:
                assert host_bytes(completion.device_buffer)[:8].tolist() == [number] * 8


@check()
def an_unknown_address_is_refused() -> None:
    array = np.zeros(8, np.uint8)
    refused(lambda: _core.host_view(array.ctypes.data, 8, 0), nanet.SetupError, "no GPU knows it")


# --- CuPy ---


def cupy_kernel(source: str) -> Any:
    import cupy

    return cupy.RawKernel(f'extern "C" __global__ void kernel({source}', "kernel")


SPIN = "unsigned char* p, long long cycles) { const long long b = clock64(); while (clock64() - b < cycles) {} p[0] = 77; }"


@check("CuPy")
def cupy_sees_it_in_place() -> None:
    import cupy

    with rig() as r, r.completion() as completion:
        for array in (cupy.asarray(completion.device_buffer), cupy.from_dlpack(completion.device_buffer)):
            assert array.data.ptr == completion.device_buffer.address
            assert array.dtype == cupy.uint8
            assert array[:64].get().tobytes() == TEXT
        index = cupy.from_dlpack(completion.device_index)
        assert index.shape == (1, 2)
        assert int(index[0, 1]) & 0xFFFF == 64


@check("CuPy")
def cupy_writes_in_place() -> None:
    import cupy

    with rig() as r, r.completion() as completion:
        array = cupy.asarray(completion.device_buffer)
        array[:4] = 9
        cupy.cuda.Device().synchronize()
        assert completion.buffer[:5].tolist() == [9, 9, 9, 9, 4]


@check("CuPy")
def release_waits_for_cupy() -> None:
    import cupy

    kernel, done = cupy_kernel(SPIN), cupy.cuda.Event()
    with rig() as r:
        for explicit in (False, True):
            for stream in (cupy.cuda.Stream.null, cupy.cuda.Stream(non_blocking=True)):
                completion = r.completion()
                buffer = completion.buffer
                kernel((1,), (1,), (cupy.asarray(completion.device_buffer), SPIN_CYCLES), stream=stream)
                done.record(stream)
                completion.release(after=done if explicit else None)
                assert done.done
                assert buffer[0] == 77


@check("CuPy")
def a_cupy_array_outlives_its_port() -> None:
    import cupy

    with rig() as r:
        array = cupy.asarray(r.completion().device_buffer)
    del r
    assert array[:64].get().tobytes() == TEXT  # nothing has come since
    cupy_kernel(SPIN)((1,), (1,), (array, SPIN_CYCLES))
    del array  # the memory goes here, when the kernel has ended
    cupy.cuda.Device().synchronize()


@check("CuPy")
def cupy_arrays_are_sent() -> None:
    import cupy
    import cupyx

    with rig() as r, r.completion() as completion:
        assert r.echo(cupy.arange(10, dtype=cupy.uint16)) == np.arange(10, dtype=np.uint16).tobytes()
        assert r.echo(cupy.zeros(0, cupy.uint8)) == b""
        part = cupy.asarray(completion.device_buffer)[8:24]
        assert np.shares_memory(np.asarray(host_bytes(part)), completion.buffer)
        assert r.echo(part) == TEXT[8:24]
        refused(lambda: r.echo(cupy.arange(10)[::2]), ValueError, "the array has gaps")
        pinned = cupyx.empty_pinned(10, np.uint8)
        assert np.shares_memory(np.asarray(host_bytes(pinned)), pinned)
        late = cupy.zeros(64, cupy.uint8)
        with cupy.cuda.Stream(non_blocking=True) as stream:
            cupy_kernel(SPIN)((1,), (1,), (late, SPIN_CYCLES), stream=stream)
            assert r.echo(late)[0] == 77  # the stream was waited for


@check("CuPy")
def the_example_counts_every_event() -> None:
    number = free_port()
    text = EXAMPLE.read_text(encoding="utf-8").replace(":6200", f":{number}")
    with subprocess.Popen([sys.executable, "-c", text], stdout=subprocess.PIPE, text=True) as example:
        assert example.stdout is not None
        assert example.stdout.readline() == "ready\n"
        emulate.run(emulator(number, 32_000))
        lines = example.stdout.read().splitlines()
    assert lines[0] == "32000 events", lines
    assert lines[2].split()[0] == "0", lines
    print("\n".join(f"  | {line}" for line in lines))


# --- PyTorch ---


@check("PyTorch")
def torch_sees_it_in_place() -> None:
    import torch

    with rig() as r, r.completion() as completion:
        for tensor in (torch.as_tensor(completion.device_buffer, device="cuda"), torch.from_dlpack(completion.device_buffer)):
            assert tensor.is_cuda
            assert tensor.data_ptr() == completion.device_buffer.address
            assert bytes(tensor[:64].cpu().numpy()) == TEXT
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it says that the array is read-only
            on_host = torch.from_numpy(completion.buffer)
        assert on_host.is_pinned()
        assert on_host.data_ptr() == completion.buffer.ctypes.data
        tensor[:4] = 9
        torch.cuda.synchronize()
        assert completion.buffer[:5].tolist() == [9, 9, 9, 9, 4]


@check("PyTorch")
def release_waits_for_torch() -> None:
    import torch

    done = torch.cuda.Event()
    with rig() as r:
        for explicit in (False, True):
            completion = r.completion()
            with torch.cuda.stream(torch.cuda.Stream()):
                torch.cuda._sleep(SPIN_CYCLES)
                torch.as_tensor(completion.device_buffer, device="cuda")[0] = 77
                done.record()
            buffer = completion.buffer
            completion.release(after=done if explicit else None)
            assert done.query()
            assert buffer[0] == 77


@check("PyTorch")
def torch_tensors_are_sent() -> None:
    import torch

    with rig() as r, r.completion() as completion:
        for tensor in (torch.arange(10, dtype=torch.int16), torch.arange(10, dtype=torch.int16).pin_memory()):
            assert np.asarray(host_bytes(tensor)).ctypes.data == tensor.data_ptr()
            assert r.echo(tensor) == np.arange(10, dtype=np.int16).tobytes()
        assert r.echo(torch.arange(10, dtype=torch.int16, device="cuda")) == np.arange(10, dtype=np.int16).tobytes()
        part = torch.as_tensor(completion.device_buffer, device="cuda")[8:24]
        assert np.shares_memory(np.asarray(host_bytes(part)), completion.buffer)
        assert r.echo(part) == TEXT[8:24]


@check("PyTorch")
def torch_counts_hits() -> None:
    """The page's few lines of PyTorch, against numpy."""
    import torch

    expected = np.zeros(wire.CHANNELS_PER_BOARD * wire.BOARDS_MAX, np.int64)
    counts = torch.zeros(len(expected), dtype=torch.int64, device="cuda")
    places = torch.arange(wire.MGP_HITS_MAX, device="cuda")
    for completion in mgp_completions(16_000):
        packets = completion.array(wire.MGP_PACKET)
        taken = np.arange(wire.MGP_HITS_MAX) < packets["events"]["hit_count"][..., None]
        expected += np.bincount(packets["events"]["hits"][taken] & 2047, minlength=len(expected))

        used = completion.packet_count * wire.MGP_PADDED_BYTES
        data = torch.as_tensor(completion.device_buffer, device="cuda")[:used].view(-1, wire.MGP_PADDED_BYTES)
        events = data[:, 16:].reshape(-1, 72)  # unused events of a packet are zero: no hits
        hits = events[:, 8:].contiguous().view(torch.int16)[places < events[:, 5:6]] & 2047
        counts += torch.bincount(hits.long(), minlength=len(counts))
    assert expected.sum() > 16_000
    assert np.array_equal(counts.cpu().numpy(), expected)


# --- Numba ---


def numba_kernel() -> Any:
    from numba import config, cuda

    config.CUDA_LOW_OCCUPANCY_WARNINGS = 0

    @cuda.jit
    def count_bytes(buffer, counts):
        place = cuda.grid(1)
        if place < buffer.size:
            cuda.atomic.add(counts, buffer[place], 1)

    return count_bytes


def compile_anything() -> None:
    """Raises what Numba raises where it imports but cannot compile (with a NumPy that is newer than it knows)."""
    from numba import cuda

    cuda.jit("void(int32)")(lambda number: None)


@check("Numba")
def numba_sees_it_in_place() -> None:
    from numba import cuda

    with rig() as r, r.completion() as completion:
        array = cuda.as_cuda_array(completion.device_buffer)
        assert array.device_ctypes_pointer.value == completion.device_buffer.address
        assert array.copy_to_host()[:64].tobytes() == TEXT
        counts = cuda.to_device(np.zeros(256, np.int32))
        numba_kernel()[1, 128](completion.device_buffer, counts)  # a kernel takes it as it is
        assert np.array_equal(counts.copy_to_host(), np.bincount(completion.buffer, minlength=256))


@check("Numba")
def release_waits_for_numba_and_its_arrays_are_sent() -> None:
    from numba import cuda

    with rig() as r:
        for explicit in (False, True):
            completion, stream, done = r.completion(), cuda.stream(), cuda.event()
            counts = cuda.to_device(np.zeros(256, np.int32), stream=stream)
            numba_kernel()[1, 128, stream](completion.device_buffer, counts)
            done.record(stream)
            expected = np.bincount(completion.buffer, minlength=256)
            completion.release(after=stream if explicit else None)
            assert done.query()
            assert np.frombuffer(r.echo(counts), np.int32).tolist() == expected.tolist()


# --- a GPU that has failed: in a process of its own, since nothing can be done with the GPU afterwards ---

FAULT = """
import cupy, nanet, socket, sys
with nanet.open(f"udp://127.0.0.1:{sys.argv[1]}", memory="host_pinned") as port:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as out:
        out.sendto(b"x" * 64, ("127.0.0.1", int(sys.argv[1])))
    completion = port.poll(5.0)
    kernel = cupy.RawKernel('extern "C" __global__ void fault(int* p) { *p = 1; }', "fault")
    kernel((1,), (1,), (cupy.uint64(4096),))
    try:
        completion.release()
    except nanet.SetupError as error:
        print(error, flush=True)
        import os
        os._exit(0)
"""


@check("CuPy")
def a_failed_gpu_is_said_at_release() -> None:
    done = subprocess.run([sys.executable, "-c", FAULT, str(free_port())], capture_output=True, text=True, check=False, timeout=60)
    assert "GPU: work of this program failed (" in done.stdout, done.stdout + done.stderr
    print("  |", done.stdout.strip())


def emulator(number: int, events: int) -> EmulatorConfig:
    return EmulatorConfig.model_validate({
        "boards": 1, "destinations": [f"udp://127.0.0.1:{number}"], "answers": None, "rate_events_per_s": 1e5,
        "events_total": events, "duration_s": 60.0, "drain_ms": 200, "pool_events": 4096,
    })  # fmt: skip


def mgp_completions(events: int) -> Iterator[nanet.Completion]:
    """Completions with that many events of the emulator, which lie in a raster."""
    number = free_port()
    with nanet.open(f"udp://127.0.0.1:{number}", protocol="mgp", memory="host_pinned", buffer_count=64) as port:
        emulate.run(emulator(number, events))
        seen = 0
        for completion in port.completions(timeout_s=1.0):
            if completion.stride_bytes:
                seen += completion.event_count
                yield completion
    assert seen > 0


def missing() -> str:
    """Why nothing can run here; empty: it can."""
    if not _core.build_info()["gpu_code"]:
        return "CUDA code not built"
    return "" if ask_driver().gpus else "no GPU"


def main() -> int:
    """The exit code."""
    why = missing()
    if why:
        print(f"{why}: {len(CHECKS)} checks of arrays in Python not run")
        return 0
    absent: dict[str, str] = {}
    for name, module in LIBRARIES.items():
        try:
            found = importlib.import_module(module)
            version = getattr(sys.modules[module.partition(".")[0]], "__version__", found.__name__)
            if name == "Numba":
                compile_anything()
            print(f"{name} {version}")
        except Exception as error:
            absent[name] = f"{type(error).__name__}: {error}".splitlines()[0]
            count = sum(library == name for library, _ in CHECKS)
            print(f"{name}: not there, or does not work with the other packages here ({absent[name]}), {count} checks not run")
    passed = failed = 0
    for library, function in CHECKS:
        if library in absent:
            continue
        try:
            function()
            passed += 1
        except Exception:
            failed += 1
            print(f"FAILED {function.__name__}")
            traceback.print_exc(file=sys.stdout)
        sys.stdout.flush()
    print(f"{passed} passed, {failed} failed")
    return int(failed > 0)


if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    os._exit(code) if code else sys.exit(0)
