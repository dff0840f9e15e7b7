# SPDX-License-Identifier: Apache-2.0
"""Aravis's camera, in software, and its control by GVCP on its one port, 3956."""

from __future__ import annotations

import contextlib
import socket
import struct
import subprocess
from collections.abc import Iterator

GVCP_PORT = 3956
WRITE_REGISTER = 0x82
PRIVILEGE, STREAM_PORT, STREAM_PACKET_BYTES, STREAM_ADDRESS = 0x0A00, 0x0D00, 0x0D04, 0x0D18  # of every GigE Vision camera
WIDTH, HEIGHT, ACQUISITION, FRAME_PERIOD_US = 0x100, 0x104, 0x124, 0x138  # of this one, as its GenICam description says
IP_UDP_BYTES = 28


class Control:
    """A few frames of GVCP."""

    def __init__(self) -> None:
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.settimeout(2)
        self._number = 0

    def write(self, register: int, value: int) -> None:
        """One register, acknowledged; a camera that has only just started is asked again."""
        self._number += 1
        for _ in range(10):
            self._socket.sendto(
                struct.pack(">BBHHHII", 0x42, 1, WRITE_REGISTER, 8, self._number, register, value), ("127.0.0.1", GVCP_PORT)
            )
            try:
                status, answer, _, number = struct.unpack(">HHHH", self._socket.recv(600)[:8])
            except (ConnectionRefusedError, TimeoutError):
                continue
            assert (status, answer, number) == (0, WRITE_REGISTER + 1, self._number)
            return
        raise AssertionError("the camera does not answer")


@contextlib.contextmanager
def camera() -> Iterator[Control]:
    """The camera, controlled."""
    command = ["arv-fake-gv-camera-0.8", "-i", "127.0.0.1", "-s", "nanet"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, stderr=subprocess.STDOUT) as process:
        try:
            assert process.stdout is not None
            control = Control()
            control.write(PRIVILEGE, 2)
            yield control
            control.write(ACQUISITION, 0)
        finally:
            process.kill()


def stream_to(control: Control, port: int, data_bytes: int, width: int, height: int, period_us: int = 50_000) -> None:
    """Frames to that port of 127.0.0.1, in packets with as many bytes of data."""
    settings = {STREAM_PORT: port, STREAM_ADDRESS: 0x7F000001, STREAM_PACKET_BYTES: data_bytes + 8 + IP_UDP_BYTES,
                WIDTH: width, HEIGHT: height, FRAME_PERIOD_US: period_us, ACQUISITION: 1}  # fmt: skip
    for register, value in settings.items():
        control.write(register, value)
