# SPDX-License-Identifier: Apache-2.0
"""nanet.open: buffers seen without a copy, given back in order, dropped and counted when all are held."""

from __future__ import annotations

import gc
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from typing import Any, ClassVar

import nanet
import numpy as np
import pytest
from loops import ROOT, emulator_config, free_ports, sender
from nanet import _core, wire
from nanet.machine.gpu_driver import ask_driver
from nanet.port.arrays import host_bytes
from nanet.run import emulate

PAYLOAD = np.dtype([("number", "<u4"), ("text", "S12")])


@pytest.fixture
def port_number() -> int:
    return free_ports(1)[0]


@pytest.fixture
def out(port_number: int) -> Iterator[socket.socket]:
    with sender(port_number) as one:
        yield one


def payload(number: int) -> bytes:
    return np.array([(number, b"hello")], PAYLOAD).tobytes()


def test_structured_view_without_a_copy(port_number: int, out: socket.socket) -> None:
    with nanet.open(f"udp://127.0.0.1:{port_number}") as port:
        for number in range(5):
            out.send(payload(number))
        numbers: list[int] = []
        for completion in port.completions(timeout_s=0.5):
            packets = completion.array(PAYLOAD)
            assert packets.base is not None
            assert not packets.flags.writeable
            assert np.shares_memory(packets, completion.buffer)
            assert set(packets["text"]) == {b"hello"}
            numbers += packets["number"].tolist()
        assert numbers == [0, 1, 2, 3, 4]
        assert port.counters()["packets_accepted"] == 5


def test_packets_of_any_length(port_number: int, out: socket.socket) -> None:
    sent = [b"x" * size for size in (1, 7, 64, 1472, 3)]
    with nanet.open(f"udp://127.0.0.1:{port_number}") as port:
        got: list[bytes] = []
        for datagram in sent:
            out.send(datagram)
        for completion in port.completions(timeout_s=0.5):
            got += [bytes(packet) for packet in completion.packets()]
            if completion.packet_count > 1 and completion.stride_bytes == 0:
                with pytest.raises(ValueError, match="use packets"):
                    completion.array(PAYLOAD)
        assert got == sent


@pytest.mark.parametrize("gro", [True, False])
@pytest.mark.parametrize("size", [17, 20, 23])
def test_packets_of_any_one_length_are_an_array(port_number: int, out: socket.socket, size: int, gro: bool) -> None:
    """Those that share a buffer lie at multiples of 8, whatever their length."""
    with nanet.open(f"udp://127.0.0.1:{port_number}", gro=gro) as port:
        for number in range(5):
            out.send(payload(number)[:16].ljust(size, b"."))
        numbers: list[int] = []
        shared = 0
        for completion in port.completions(timeout_s=0.5):
            packets = completion.array(PAYLOAD)
            assert np.shares_memory(packets, completion.buffer)
            numbers += packets["number"].tolist()
            shared = max(shared, completion.packet_count)
        assert numbers == [0, 1, 2, 3, 4]
        assert shared > 1


def test_why_packets_are_no_array(port_number: int, out: socket.socket) -> None:
    with nanet.open(f"udp://127.0.0.1:{port_number}") as port:
        for size in (8, 24, 8, 24):
            out.send(bytes(size))
        refused = 0
        for completion in port.completions(timeout_s=0.5):
            if len(set(completion.index["bytes"].tolist())) > 1:
                refused += 1
                with pytest.raises(ValueError, match=re.escape("the packets differ in length (8 to 24 B) use packets()")):
                    completion.array("u1")
        assert refused


def test_a_dtype_that_is_too_long(port_number: int, out: socket.socket) -> None:
    with nanet.open(f"udp://127.0.0.1:{port_number}") as port:
        out.send(b"12345678")
        completion = port.poll(2.0)
        assert completion is not None
        assert completion.array("<u4").tolist() == [int.from_bytes(b"1234", "little")]  # the rest of a packet is skipped
        with pytest.raises(ValueError, match="a packet has 8 B"):
            completion.array(PAYLOAD)


def test_held_buffers_drop_and_recover(port_number: int, out: socket.socket) -> None:
    """All buffers held: packets are dropped under their own name; a released buffer takes packets again."""
    with nanet.open(f"udp://127.0.0.1:{port_number}", buffer_count=2, buffer_bytes=65536) as port:
        held = []
        for number in range(2):
            out.send(payload(number))
            completion = port.poll(2.0)
            assert completion is not None
            held.append(completion)
        for number in range(2, 12):
            out.send(payload(number))
        assert port.poll(0.2) is None
        counters = port.counters()
        assert (counters["packets_accepted"], counters["packets_clop_full"]) == (2, 10)
        assert [int(c.array(PAYLOAD)["number"][0]) for c in held] == [0, 1]  # nothing was overwritten

        held[1].release()  # out of order: waits for the older one
        held[0].release()
        held[0].release()  # twice is once
        out.send(payload(99))
        completion = port.poll(2.0)
        assert completion is not None
        assert completion.array(PAYLOAD)["number"].tolist() == [99]


def test_a_view_used_too_late_is_memory_still(port_number: int, out: socket.socket) -> None:
    port = nanet.open(f"udp://127.0.0.1:{port_number}")
    out.send(payload(7))
    completion = port.poll(2.0)
    assert completion is not None
    view = completion.array(PAYLOAD)
    completion.release()
    with pytest.raises(ValueError, match="was released"):
        _ = completion.buffer
    port.close()
    del port, completion
    gc.collect()
    assert view["number"].sum() >= 0  # readable; its content may have changed
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as again:
        del view
        gc.collect()
        again.bind(("127.0.0.1", port_number))  # the port is free once nothing refers to it


def test_closed(port_number: int) -> None:
    with nanet.open(f"udp://127.0.0.1:{port_number}") as port:
        pass
    assert port.closed
    with pytest.raises(ValueError, match="the port is closed"):
        port.poll()
    with pytest.raises(ValueError, match="the port is closed"):
        port.send("udp://127.0.0.1:9", b"")


def test_send(port_number: int) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as receiver:
        receiver.bind(("127.0.0.1", 0))
        receiver.settimeout(5)
        url = f"udp://127.0.0.1:{receiver.getsockname()[1]}"
        with nanet.open(f"udp://127.0.0.1:{port_number}") as port:
            assert port.send(url, b"one")
            assert port.send(url, np.frombuffer(b"two", np.uint8))
            assert [receiver.recv(100), receiver.recv(100)] == [b"one", b"two"]


def test_dlpack(port_number: int, out: socket.socket) -> None:
    """Others see a buffer without a copy, for as long as it is held."""
    with nanet.open(f"udp://127.0.0.1:{port_number}") as port:
        out.send(payload(5))
        completion = port.poll(2.0)
        assert completion is not None
        assert completion.__dlpack_device__() == (1, 0)  # memory of the CPU
        array = np.from_dlpack(completion)
        assert np.shares_memory(array, completion.buffer)
        assert array.dtype == np.uint8
        assert not array.flags.writeable
        assert array.tobytes() == completion.buffer.tobytes()
        assert np.shares_memory(np.from_dlpack(completion, device="cpu"), array)
        for device in ((2, 0), (3, 0), (1, 1)):
            with pytest.raises(BufferError, match=re.escape(f"{device} does not see the buffer (memory host is seen by (1, 0))")):
                completion.__dlpack__(dl_device=device)
        with pytest.raises(BufferError, match="copy"):
            completion.__dlpack__(copy=True)
        for part in ("device_buffer", "device_index"):
            with pytest.raises(nanet.SetupError, match=re.escape("(its memory is host) open it with memory host_pinned")):
                getattr(completion, part)
        completion.release()
        for late in (completion.__dlpack__, lambda: completion.device_buffer, lambda: completion.index):
            with pytest.raises(ValueError, match="was released"):
                late()


def test_release_waits_for_what_it_is_given(port_number: int, out: socket.socket) -> None:
    class Event:
        waited = 0

        def synchronize(self) -> None:
            self.waited += 1

    event = Event()
    with nanet.open(f"udp://127.0.0.1:{port_number}") as port:
        out.send(payload(5))
        completion = port.poll(2.0)
        assert completion is not None
        completion.release(after=event)
        completion.release(after=event)
        assert event.waited == 1


ARRAYS = {
    "bytes": b"abcdef",
    "memoryview": memoryview(b"a-b-c-")[::2],
    "transposed": np.arange(6, dtype="<u2").reshape(2, 3).T,
    "structured": np.array([(1, 2), (3, 4)], [("a", "u1"), ("b", "<u4")]),
    "scalar": np.float32(1),
    "empty": b"",
}


@pytest.mark.parametrize("name", ARRAYS)
def test_send_anything_that_the_host_can_read(port_number: int, name: str) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as receiver:
        receiver.bind(("127.0.0.1", 0))
        receiver.settimeout(5)
        with nanet.open(f"udp://127.0.0.1:{port_number}") as port:
            assert port.send(f"udp://127.0.0.1:{receiver.getsockname()[1]}", ARRAYS[name])
        assert receiver.recv(100) == bytes(ARRAYS[name])


class OnlyDlpack:
    """What PyTorch has in host memory: DLPack, and no buffer protocol."""

    def __init__(self, array: Any) -> None:
        self.array = array

    def __dlpack__(self, **options: Any) -> Any:
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self) -> Any:
        return self.array.__dlpack_device__()


def test_bytes_to_send_are_read_in_place() -> None:
    array = np.arange(12, dtype=np.uint16)
    assert np.shares_memory(np.asarray(host_bytes(array)), array)
    assert np.shares_memory(np.asarray(host_bytes(OnlyDlpack(array))), array)
    assert bytes(host_bytes(OnlyDlpack(array[::2]))) == array[::2].tobytes()


@pytest.mark.parametrize("payload", [5, "text", [1, 2], None])
def test_what_is_no_array_is_not_sent(port_number: int, payload: Any) -> None:
    with nanet.open(f"udp://127.0.0.1:{port_number}") as port, pytest.raises(TypeError, match="bytes-like"):
        port.send("udp://127.0.0.1:9", payload)


def test_an_array_of_a_gpu_with_gaps_is_refused() -> None:
    class Gaps:
        __cuda_array_interface__: ClassVar = {
            "shape": (2, 3), "typestr": "<u2", "data": (4096, False), "strides": (12, 2), "version": 3,
        }  # fmt: skip

    with pytest.raises(ValueError, match=re.escape("the array has gaps (it is a view of a larger one)")):
        host_bytes(Gaps())


def test_pinned_memory_needs_a_gpu(port_number: int) -> None:
    """Without one, the port says why: no GPU code, or no GPU. With one, the buffers are seen."""
    if _core.build_info()["gpu_code"] and ask_driver().gpus:
        with nanet.open(f"udp://127.0.0.1:{port_number}", memory="host_pinned") as port:
            assert port.device_index == 0
        return
    why = "no CUDA-capable device|driver" if _core.build_info()["gpu_code"] else "nanet was built without CUDA"
    with pytest.raises(nanet.SetupError, match=rf"CLOP 'port' cannot be made visible to a GPU \(.*({why}).*\) .*memory host"):
        nanet.open(f"udp://127.0.0.1:{port_number}", memory="host_pinned")
    with nanet.open(f"udp://127.0.0.1:{port_number}"):  # the port is free again
        pass


def test_the_checks_for_a_gpu_say_what_did_not_run() -> None:
    command = [sys.executable, str(ROOT / "tests" / "gpu" / "port_arrays.py")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=280, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    last = done.stdout.splitlines()[-1]
    assert re.fullmatch(r"(CUDA code not built|no GPU): \d+ checks of arrays in Python not run|\d+ passed, 0 failed", last)


def test_mgp_is_checked(port_number: int) -> None:
    with nanet.open(f"udp://127.0.0.1:{port_number}", protocol="mgp", buffer_count=64) as port:
        sent = emulate.run(emulator_config(port_number, None, events_total=16_000))
        events = packets = 0
        for completion in port.completions(timeout_s=0.5):
            array = completion.array(wire.MGP_PACKET)
            assert len(array) == completion.packet_count
            assert np.all(array["source_id"] == 0x1C)
            events += int(array["event_count"].sum())
            packets += len(array)
        counters = port.counters()
        lost = counters["events_lost"]  # nothing was taken while the boards sent, so the socket's buffer may have been too small
    assert events + lost == sent["sent"] == 16_000
    assert packets == counters["packets_accepted"]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"buffer_count": 3}, "buffer_count 3 is not a power of two"),
        ({"buffer_bytes": 8192}, "buffer_bytes 8192 is too small"),
        ({"protocol": "mgb"}, "did you mean 'mgp'?"),
        ({"bufer_count": 4}, "did you mean 'buffer_count'?"),
        ({"memory": "device"}, "cannot be device memory (the kernel copies the packets of a UDP link into host memory"),
        ({"memory": "pinned"}, "must be one of host, host_pinned, device"),
        ({"sources": [{"name": "a"}]}, "raw datagrams carry no source ID"),
    ],
)
def test_wrong_options(port_number: int, options: dict[str, object], expected: str) -> None:
    with pytest.raises(nanet.ConfigError, match=re.escape(expected)):
        nanet.open(f"udp://127.0.0.1:{port_number}", **options)  # type: ignore[arg-type]


def test_a_taken_port(port_number: int) -> None:
    with nanet.open(f"udp://127.0.0.1:{port_number}"), pytest.raises(nanet.SetupError, match=str(port_number)):
        nanet.open(f"udp://127.0.0.1:{port_number}")


def test_thirty_lines(tmp_path: object) -> None:
    """The example is a working trigger: every event of a slow run is answered, and rightly."""
    receive, answers = free_ports()
    text = (ROOT / "examples" / "thirty_lines.py").read_text().replace(":6200", f":{receive}").replace(":6300", f":{answers}")
    assert len(text.splitlines()) <= 36
    with subprocess.Popen([sys.executable, "-c", text], stdout=subprocess.PIPE, text=True) as example:
        assert example.stdout is not None
        assert example.stdout.readline() == "ready\n"
        result = emulate.run(emulator_config(receive, answers, rate_events_per_s=5e4, events_total=32_000))
        assert example.stdout.readline() == "32000 events\n"
    assert result["lost"] == 0
    assert set(result["mistakes"].values()) == {0}
