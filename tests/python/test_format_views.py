# SPDX-License-Identifier: Apache-2.0
"""Units and headers as arrays: the declared dtype and shape without a copy, packed numbers unpacked, holes as a mask."""

from __future__ import annotations

import os
import socket
from typing import Any

import nanet
import numpy as np
import pytest
from nanet import _core
from nanet.config import formats
from nanet.config.components import Format
from nanet.format import make
from nanet.format.make import Faults, Made, MakeOptions
from nanet.format.views import field_of, header_dtype
from nanet.port.views import sample_view


def declared(**samples: Any) -> Format:
    return Format.model_validate({"about": "a format of a test", "byte_order": samples.pop("order_of_bytes", "little"), "header_bytes": 0,
                                  "payload": {"samples": samples}})  # fmt: skip


def bit_by_bit(values: list[int], bits: int, order: str) -> bytes:
    """The numbers without gaps, written one bit after the other."""
    text = "".join((f"{value:0{bits}b}" if order == "msb_first" else f"{value:0{bits}b}"[::-1]) for value in values)
    text = text.ljust(-(-len(text) // 8) * 8, "0")
    return bytes(int(text[at : at + 8] if order == "msb_first" else text[at : at + 8][::-1], 2) for at in range(0, len(text), 8))


@pytest.mark.parametrize("bits", [1, 2, 3, 7, 10, 12, 14, 20, 31, 33, 48, 63])
@pytest.mark.parametrize("kind", ["unsigned", "signed", "offset_binary"])
@pytest.mark.parametrize("order", ["lsb_first", "msb_first"])
def test_packed_numbers_are_read(bits: int, kind: str, order: str) -> None:
    random = np.random.default_rng(bits)
    codes = [0, (1 << bits) - 1, 1 << (bits - 1)] + [int(random.integers(0, 1 << bits)) for _ in range(37)]
    data = np.frombuffer(bit_by_bit(codes, bits, order), dtype=np.uint8)
    view = sample_view(declared(bits=bits, kind=kind, order=order, order_of_bytes="big" if order == "msb_first" else "little"))
    half = 1 << (bits - 1)
    meant = {
        "unsigned": lambda one: one,
        "signed": lambda one: one - 2 * half if one >= half else one,
        "offset_binary": lambda one: one - half,
    }[kind]
    assert view.array(data).tolist()[: len(codes)] == [meant(one) for one in codes]
    assert view.dtype is None


@pytest.mark.parametrize(
    ("bits", "kind", "order", "dtype"),
    [(16, "unsigned", "big", ">u2"), (32, "signed", "little", "<i4"), (64, "float", "big", ">f8")],
)
def test_numbers_of_whole_bytes_are_seen_in_place(bits: int, kind: str, order: str, dtype: str) -> None:
    view = sample_view(declared(bits=bits, kind=kind, order_of_bytes=order, shape=[2, 4]))
    data = np.arange(16 * bits // 8, dtype=np.uint8)
    numbers = view.array(data)
    assert (numbers.dtype, numbers.shape) == (np.dtype(dtype), (4, 4))
    assert np.shares_memory(numbers, data)


def test_a_frame_of_a_detector_is_an_image_with_holes() -> None:
    wanted = formats.load("jungfrau")
    packets = list(make.packets(wanted, MakeOptions(packets=256), Faults(), Made()))
    left_out = 128 + 5
    to = (f"127.84.{os.getpid() >> 8 & 255}.{os.getpid() & 255}", 21_000)  # an address of this process's own
    with nanet.open(f"udp://{to[0]}:{to[1]}", protocol="jungfrau", buffer_bytes=1 << 20, packet_bytes_max=9000,
                    assemble={"streams_max": 1, "units_open": 2, "timeout_us": 200_000}) as port:  # fmt: skip
        images = []
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
            for k, packet in enumerate(packets):
                if k != left_out:
                    sender.sendto(packet, to)
                if (completion := port.poll()) is not None:
                    images.append(completion)
            while len(images) < 2 and (completion := port.poll(5.0)) is not None:
                images.append(completion)
        for number, completion in enumerate(images):
            unit = completion.unit
            assert unit is not None
            image, mask = unit.view(), unit.view_mask()
            assert (image.dtype, image.shape, mask.shape) == (np.dtype("<u2"), (512, 1024), (512, 1024))
            assert np.shares_memory(image, completion.buffer)
            sent = np.frombuffer(b"".join(packet[48:] for packet in packets[128 * number :][:128]), "<u2").reshape(512, 1024)
            assert np.array_equal(np.ma.masked_array(image, mask).filled(0), np.where(mask, 0, sent))
            rows = np.flatnonzero(mask.all(axis=1)).tolist()
            assert rows == ([20, 21, 22, 23] if number else [])
            assert mask.any(axis=1).sum() == len(rows)
    assert len(images) == 2


def test_fields_of_many_packets_are_a_structured_array() -> None:
    wanted = formats.load("dune-wibeth")
    packets = list(make.packets(wanted, MakeOptions(packets=50, streams=3), Faults(), Made()))
    layout = header_dtype(wanted.declaration)
    records = np.frombuffer(b"".join(packet[: layout.itemsize] for packet in packets), layout)
    decoder = _core.FormatDecoder(wanted.keys())
    for name in ("crate", "slot", "stream_id", "seq_id", "timestamp"):
        assert field_of(wanted.declaration, records, name).tolist() == [decoder.fields(packet)[name] for packet in packets]
    assert np.shares_memory(field_of(wanted.declaration, records, "timestamp"), records)
    with pytest.raises(ValueError, match="no field 'tick'"):
        field_of(wanted.declaration, records, "tick")
    with pytest.raises(ValueError, match="fixed place"):
        header_dtype(formats.load("spead-64-48").declaration.model_copy(update={"header": ()}))
