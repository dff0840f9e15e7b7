# SPDX-License-Identifier: Apache-2.0
"""`nanet format` and `nanet emulate format`: declared packet formats."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nanet.cli.options import JsonFile, LuaFile, PcapFile

if TYPE_CHECKING:
    from nanet.config.formats import DeclaredFormat
    from nanet.format.check import Checked
    from nanet.format.keys import CheckResult, EmulateResult, ListResult

NameOrFile = Annotated[str, typer.Argument(metavar="NAME|FILE", help="A format that is shipped, or a YAML file that declares one.")]

format_app = typer.Typer(no_args_is_help=True, help="Declared packet formats: list, check, show, give to Wireshark.")


@format_app.command("list")
def list_formats(json_file: JsonFile = None) -> None:
    """List the formats that are shipped."""
    from nanet.config import formats
    from nanet.result import files

    rows = [formats.load(name) for name in formats.shipped_names()]
    result: ListResult = {
        **files.base("format list"),
        "formats": [{"name": one.name, "about": one.declaration.about} for one in rows],
    }
    files.write_json(json_file, result)
    for one in rows:
        print(f"{one.name:14} {one.declaration.about}", flush=True)


@format_app.command()
def check(
    declaration: NameOrFile,
    recording: Annotated[Path | None, typer.Argument(metavar="[PCAP]", help="A recording: what each of its packets means.")] = None,
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="Packets to this UDP port only; 0: all.")] = 0,
    quiet: Annotated[bool, typer.Option("--quiet", help="Totals only.")] = False,
    fields: Annotated[bool, typer.Option("--fields", help="The fields of each packet, too.")] = False,
    json_file: JsonFile = None,
) -> None:
    """Check a declaration, and the packets of a recording by it.

    Exits with 1 when a packet is refused, there is none, or the recording has only a part of one.
    """
    from nanet.config import formats
    from nanet.config.errors import ConfigError
    from nanet.format.check import Totals
    from nanet.format.check import check as check_packets
    from nanet.result import files
    from nanet.result.books import lost_text

    try:
        declared = formats.load(declaration)
    except ConfigError as error:
        for line in error.problems:
            typer.echo(f"nanet: {line}", err=True)
        raise typer.Exit(2) from None
    totals = Totals()
    for one in check_packets(declared, recording, totals, port=port) if recording is not None else ():
        if not quiet:
            print(_line(one, declared), flush=True)
        if fields:
            print("        " + ", ".join(f"{name} {value:#x}" for name, value in one.fields.items()), flush=True)
    result: CheckResult = {
        **files.base("format check"), "format": declared.name, "declaration": declared.keys(), "packets": totals.packets,
        "accepted": totals.accepted, "refused": dict(totals.refused), "streams": len(totals.streams), "units": len(totals.units),
        "payload_bytes": totals.payload_bytes, "events": totals.events, "skipped": totals.skipped,
        "passed_over": totals.passed_over,
    }  # fmt: skip
    files.write_json(json_file, result)
    if recording is None:
        print(f"{declared.name}: valid", flush=True)
        return
    why = ", ".join(f"{count:,} {name}" for name, count in sorted(totals.refused.items())) or "none"
    print(f"{totals.packets:,} packets: {totals.accepted:,} accepted, refused: {why}; {len(totals.streams):,} streams,"
          f" {len(totals.units):,} units, {totals.payload_bytes:,} bytes of payload; passed over: {lost_text(totals.passed_over)}", flush=True)  # fmt: skip
    raise typer.Exit(0 if totals.packets and totals.accepted == totals.packets and not totals.parts() else 1)


def _line(one: Checked, declared: DeclaredFormat) -> str:
    if one.meaning is None:
        return f"{one.number:6}  {one.packet_bytes:5} B  refused: {one.refusal}: {one.why}"
    said = one.meaning
    format_ = declared.declaration
    places = {key for body in (format_, *format_.variants) for key in ("place", "packet_index") if getattr(body, key) is not None}
    keys = {
        "stream": bool(format_.stream), "unit": bool(format_.unit), "place": bool(places), "unit_bytes": False, "unit_packets": False,
        "sequence": format_.sequence is not None, "time": bool(format_.time),
    }  # fmt: skip
    words = [
        f"{'packet' if key == 'place' and 'packet_index' in places else key} {said[key]:,}"
        for key, is_said in keys.items()
        if is_said or said[key]
    ]
    words += [key for key in ("start", "stop", "first", "last") if said[key]]
    words += [f"{said['event_count']} events"] if said["event_count"] else []
    return f"{one.number:6}  {one.packet_bytes:5} B  {', '.join(words) or 'no role'}; {said['payload_bytes']:,} B of payload at {said['payload_offset']}"


@format_app.command()
def show(declaration: NameOrFile) -> None:
    """Show the header as a picture, and what its fields are for."""
    from nanet.config import formats
    from nanet.format import show as picture

    for line in picture.lines(formats.load(declaration)):
        print(line, flush=True)


@format_app.command()
def dissector(
    declaration: NameOrFile,
    lua_file: LuaFile = None,
) -> None:
    """Make a Wireshark plug-in for a format.

    Then: tshark -X lua_script:FILE.lua -d udp.port==PORT,nanet_NAME -r FILE.pcap
    """
    from nanet.config import formats
    from nanet.format import dissector as maker
    from nanet.result import outputs

    text = maker.source(formats.load(declaration))
    if lua_file is not None:
        outputs.write(lua_file, text.encode())
    else:
        print(text, end="", flush=True)


@format_app.command()
def schema() -> None:
    """Print every word of the language, as a JSON schema."""
    import json

    from nanet.config.schema import format_schema

    print(json.dumps(format_schema(), indent=1), flush=True)


def emulate_format(
    declaration: NameOrFile,
    to: Annotated[str | None, typer.Option("--to", metavar="URL", help="Where the packets go: udp://ADDRESS:PORT.")] = None,
    pcap: PcapFile = None,
    packets: Annotated[int, typer.Option("--packets", min=1, max=10_000_000, help="How many valid packets are made.")] = 10_000,
    rate: Annotated[
        float, typer.Option("--rate", metavar="PACKETS/S", min=1, help="Held exactly, also in the pcap file.")
    ] = 10_000.0,
    streams: Annotated[int, typer.Option("--streams", min=1, max=65536, help="Senders, in turn.")] = 1,
    payload_bytes: Annotated[
        int,
        typer.Option("--payload", metavar="BYTES", min=0, max=65000, help="Payload of a packet, where the format leaves it open."),
    ] = 1024,
    unit_packets: Annotated[
        int, typer.Option("--unit-packets", min=1, max=65536, help="Packets of a unit, where the format leaves it open.")
    ] = 8,
    seed: Annotated[int, typer.Option("--seed", help="Seed of everything that is random.")] = 1,
    drop: Annotated[float, typer.Option("--drop", min=0, max=1, help="Share of packets that are left out.")] = 0.0,
    duplicate: Annotated[float, typer.Option("--duplicate", min=0, max=1, help="Share that are sent twice.")] = 0.0,
    reorder: Annotated[float, typer.Option("--reorder", min=0, max=1, help="Share that are sent after the next one.")] = 0.0,
    damage: Annotated[float, typer.Option("--damage", min=0, max=1, help="Share with a bit turned round.")] = 0.0,
    json_file: JsonFile = None,
) -> None:
    """Any declared format: send valid packets, and faults.

    The packets are made from the declaration and a seed.
    """
    from nanet.config import formats
    from nanet.config.errors import ConfigError
    from nanet.format import make
    from nanet.result import files
    from nanet.result.books import lost_text
    from nanet.run import replay as player

    if (to is None) == (pcap is None):
        raise ConfigError(["where the packets go is not clear (either --to or --pcap) give one of them"])
    declared = formats.load(declaration)
    options = make.MakeOptions(packets=packets, streams=streams, payload_bytes=payload_bytes, unit_packets=unit_packets, seed=seed)
    made = make.Made()
    payloads = make.packets(declared, options, make.Faults(drop, duplicate, reorder, damage), made)
    played = None
    if pcap is not None:
        make.write_pcap(pcap, payloads, rate, 6200)
    else:
        with tempfile.TemporaryDirectory() as folder:
            recording = Path(folder) / "made.pcap"
            make.write_pcap(recording, payloads, rate, 6200)
            played = player.run(
                player.options_from_text(recording, str(to), f"{rate:g}p", laps=1, only_port=0, layout="padded", fine_time=0)
            )
    result: EmulateResult = {
        **files.base("emulate format"), "format": declared.name, "valid": made.valid, "sent": made.sent, "dropped": made.dropped,
        "duplicated": made.duplicated, "reordered": made.reordered, "damaged": made.damaged, "rate_packets_per_s": rate,
        "tx_refused": played["tx_refused"] if played is not None else 0, "tx_dropped": played["tx_dropped"] if played is not None else 0,
    }  # fmt: skip
    files.write_json(json_file, result)
    print(f"{made.sent:,} packets of {declared.name} to {to or pcap}: {made.valid:,} made, {made.dropped:,} dropped, {made.duplicated:,} sent twice,"
          f" {made.reordered:,} out of order, {made.damaged:,} damaged", flush=True)  # fmt: skip
    if played is None:
        return
    if failed := player.not_arrived(played):
        print(f"not received: {lost_text(failed)}", flush=True)
    if played["stopped_early"]:
        print(f"stopped after {played['packets_sent']:,} packets (a signal arrived)", flush=True)
    raise typer.Exit(1 if failed or played["stopped_early"] else 0)
