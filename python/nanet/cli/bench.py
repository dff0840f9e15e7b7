# SPDX-License-Identifier: Apache-2.0
"""The commands `nanet bench rate`, `latency` and `rings`, and their options."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nanet.cli.bench_assemble import bench_assemble
from nanet.cli.bench_gateware import bench_gateware
from nanet.cli.bench_gpu import bench_gpu
from nanet.cli.bench_km3_burst import bench_km3_burst
from nanet.cli.bench_km3_control import bench_km3_control
from nanet.cli.bench_km3_link import bench_km3_link
from nanet.cli.bench_torus import bench_torus
from nanet.cli.options import (
    Boards,
    Budget,
    Burst,
    CsvFile,
    EventsPerPacket,
    FinderOption,
    JsonFile,
    Layout,
    LayoutOption,
    MeanHits,
    MetricsOption,
    Out,
    PortOption,
    Rate,
    Runtime,
    RuntimeOption,
    Sample,
    SampleOption,
    Topology,
    TopologyOption,
    set_by,
)
from nanet.result import outputs

if TYPE_CHECKING:
    from nanet.result.keys.base import Base

bench_app = typer.Typer(no_args_is_help=True, help="Measure links, ring finders, GPU, gateware, units.")
bench_app.command("gpu")(bench_gpu)
bench_app.command("gateware")(bench_gateware)
bench_app.command("km3-link")(bench_km3_link)
bench_app.command("km3-control")(bench_km3_control)
bench_app.command("km3-burst")(bench_km3_burst)
bench_app.command("torus")(bench_torus)
bench_app.command("assemble")(bench_assemble)

LinkOption = Annotated[
    str | None,
    typer.Option(
        "--link", metavar="all|NAME,...", is_eager=True,
        help="Compare these links (docs/design/links-compared.md names them) over two network namespaces, with their peers. Needs root.",
    ),
]  # fmt: skip
PeersOption = Annotated[bool, typer.Option("--peers/--no-peers", help="With --link: measure the peers too, or leave them out.")]
AloneOption = Annotated[
    bool,
    typer.Option(
        "--alone/--no-alone",
        help="With --link: also the rate of each link alone, which only receives and counts, as spead2 does.",
    ),
]
BoardsViaOption = Annotated[
    str,
    typer.Option(
        "--boards-via", metavar="auto|socket|answers-xdp|xdp",
        help="With --link: how the emulator sends and receives answers; auto: whatever disturbs least. Links with super-packets keep sockets.",
    ),
]  # fmt: skip
LongRunOption = Annotated[
    float,
    typer.Option(
        "--long-run", metavar="PACKETS", min=0.0, help="With --link: one more run of this many packets, such as 1e8; 0: none."
    ),
]
ShareOption = Annotated[
    float, typer.Option("--share", min=0.01, max=1.0, help="With --long-run: at this fraction of the critical rate.")
]
Lowest = Annotated[
    float | None,
    typer.Option(
        "--lowest",
        help="Lowest rate of the search [events/s]; by default it begins at 1e6, or 1e5 with --link, and goes down to 1e4.",
    ),
]
Highest = Annotated[float, typer.Option("--highest", help="Highest rate of the search [events/s].")]


@bench_app.command("rate")
def bench_rate(
    context: typer.Context,
    boards: Boards = 1,
    layout: LayoutOption = Layout.PADDED,
    burst: Burst = 32,
    events_per_packet: EventsPerPacket = 16,
    topology: TopologyOption = Topology.RUN_TO_COMPLETION,
    link: LinkOption = None,
    peers: PeersOption = True,
    alone: AloneOption = True,
    boards_via: BoardsViaOption = "auto",
    long_run: LongRunOption = 0.0,
    share: ShareOption = 0.9,
    lowest: Lowest = None,
    highest: Highest = 40e6,
    steps: Annotated[int, typer.Option("--steps", min=3, help="Number of rates to try.")] = 9,
    repeats: Annotated[int, typer.Option("--repeats", min=1, help="Runs at each rate.")] = 3,
    duration: Annotated[float, typer.Option("--duration", metavar="S", help="Length of each run.")] = 2.0,
    short: Annotated[bool, typer.Option("--short", help="Quick check: four steps of one run of 0.3 s.")] = False,
    budget_us: Budget = 1000,
    port: PortOption = 6200,
    sample: SampleOption = Sample.SINGLE,
    mean_hits: MeanHits = None,
    finder: FinderOption = "math",
    runtime: RuntimeOption = Runtime.CPU,
    metrics: MetricsOption = None,
    out: Out = Path("out"),
    json_file: JsonFile = None,
    csv_file: CsvFile = None,
) -> None:
    """Find the highest rate without loss, on one engine core.

    A binary search with repeats.
    """
    from nanet.bench import rate
    from nanet.loop.run import Loop

    if short:
        set_by(context, "--short", {"steps", "repeats", "duration"})
    loop = Loop(
        boards=boards, layout=layout.value, burst_packets=burst, events_per_packet=events_per_packet, topology=topology.value,
        budget_us=budget_us, port=port, sample=sample.value, mean_hits=mean_hits, finder=finder, runtime=runtime.value,
        metrics=metrics,
    )  # fmt: skip
    outputs.reserve_folder(out, f"bench-rate{'' if link is None else '-links'}.html")
    first = lowest or (1e6 if link is None else 1e5)
    search = rate.RateSearch(loop, first, highest, steps, repeats, duration, lowest or rate.LOWEST)
    if short:
        search = replace(search, steps=4, repeats=1, repeat_s=0.3)
    if link is not None:
        more = {"alone": alone, "long_run_packets": long_run, "long_run_share": share}
        _compare("rate", link, peers, search, short, out, json_file, csv_file, boards_via, more=more)
    result = rate.run(search, _say)
    critical = result["critical_rate_events_per_s"]
    _say(rate.verdict_text(result))
    _finish(result, "rate", rate.csv_rows(result), out, json_file, csv_file)
    raise typer.Exit(0 if critical > 0 else 1)


@bench_app.command("latency")
def bench_latency(
    context: typer.Context,
    rate: Rate = 1e6,
    link: LinkOption = None,
    peers: PeersOption = True,
    boards_via: BoardsViaOption = "auto",
    lowest: Lowest = None,
    highest: Highest = 40e6,
    burst: Burst = 1,
    boards: Boards = 1,
    layout: LayoutOption = Layout.PADDED,
    repeats: Annotated[
        int, typer.Option("--repeats", min=1, help="Rounds of sockperf, nanet, sockperf; with --link runs at each load.")
    ] = 3,
    duration: Annotated[
        float, typer.Option("--duration", metavar="S", help="Length of our part of a round, or of such a run.")
    ] = 5.0,
    short: Annotated[bool, typer.Option("--short", help="Quick check: one round of a second each.")] = False,
    budget_us: Budget = 1000,
    port: PortOption = 6200,
    sample: SampleOption = Sample.SINGLE,
    mean_hits: MeanHits = None,
    finder: FinderOption = "math",
    runtime: RuntimeOption = Runtime.CPU,
    metrics: MetricsOption = None,
    out: Out = Path("out"),
    json_file: JsonFile = None,
    csv_file: CsvFile = None,
) -> None:
    """Measure how long answers take after an event's last packet.

    The same run measures sockperf's round trip for comparison. With --link the loads are 10, 50 and 90 % of each link's critical
    rate, which is found first, and --rate is not used.
    """
    from nanet.bench import latency
    from nanet.loop.run import Loop

    if short:
        set_by(context, "--short", {"repeats", "duration"})
    loop = Loop(
        rate_events_per_s=rate, boards=boards, layout=layout.value, burst_packets=burst, budget_us=budget_us, port=port,
        sample=sample.value, mean_hits=mean_hits, finder=finder, runtime=runtime.value,
        metrics=metrics,
    )  # fmt: skip
    outputs.reserve_folder(out, f"bench-latency{'' if link is None else '-links'}.html")
    if link is not None:
        from nanet.bench.rate import RateSearch

        search = RateSearch(loop, lowest or 1e5, highest, 4, 1, 0.3) if short else RateSearch(loop, lowest or 1e5, highest, 9)
        _compare("latency", link, peers, search, short, out, json_file, csv_file, boards_via, repeats, duration)
    bench = latency.LatencyBench(loop, repeats, duration)
    if short:
        bench = latency.LatencyBench(loop, 1, 1.0, 1.0)
    result = latency.run(bench, _say)
    ours, theirs = result["latency_us"], result["sockperf_us"]
    _say(f"p50 {ours['p50']:.2f} us, {result['p50_above_sockperf_us']:+.2f} us compared with sockperf's {theirs['p50']:.2f}")
    _say(f"p99.9 {ours['p99_9']:.1f} us, {result['p99_9_ratio_to_sockperf']:.2f} times sockperf's {theirs['p99_9']:.1f}")
    _say(
        f"max {result['max_us']:,.0f} us (sockperf {result['sockperf_max_us']:,.0f}), longest own stall {result['longest_stall_us']:,.0f} us"
    )
    _finish(result, "latency", latency.csv_rows(result), out, json_file, csv_file)
    raise typer.Exit(0 if not result["lost"] and ours["p99_9"] <= budget_us else 1)


@bench_app.command("rings")
def bench_rings(
    context: typer.Context,
    finder: Annotated[
        list[str] | None, typer.Option("--finder", help="Time this ring finder, or all, instead of the MATH fit and its peers.")
    ] = None,
    events: Annotated[int, typer.Option("--events", min=64, help="Events in a batch.")] = 16384,
    repeats: Annotated[int, typer.Option("--repeats", min=1, help="Timings of each case; the median counts.")] = 5,
    short: Annotated[bool, typer.Option("--short", help="Quick check: few events, one repeat.")] = False,
    core: Annotated[int | None, typer.Option("--core", help="Run on this core.")] = None,
    out: Out = Path("out"),
    json_file: JsonFile = None,
    csv_file: CsvFile = None,
) -> None:
    """Measure ring fits per second on one core.

    With ratios to vectorised numpy and to circle-fit, and the resolution against truth.
    """
    from nanet.bench import finders, rings
    from nanet.machine.facts import keep_to, plan_cores

    if short:
        set_by(context, "--short", {"events", "repeats"})
    outputs.reserve_folder(out, f"bench-{'finders' if finder else 'rings'}.html")
    chosen = core if core is not None else plan_cores().engine
    if chosen is not None:
        keep_to({chosen})
    if finder:
        wanted = () if "all" in finder else tuple(finder)
        of_finders = finders.FinderBench(wanted, 512, 1) if short else finders.FinderBench(wanted, min(events, 8192), repeats)
        found = finders.run(of_finders, _say)
        _finish(found, "finders", finders.csv_rows(found), out, json_file, csv_file)
        raise typer.Exit(0 if found["same_bits"] else 1)
    bench = rings.RingBench(2048, 1, 0.05) if short else rings.RingBench(events, repeats)
    result = rings.run(bench, _say)
    _finish(result, "rings", rings.csv_rows(result), out, json_file, csv_file)


def _compare(
    kind: str, names: str, peers: bool, search: Any, short: bool, out: Path, json_file: Path | None, csv_file: Path | None,
    boards_via: str, repeats: int = 3, duration_s: float = 5.0, more: Mapping[str, Any] | None = None,
) -> None:  # fmt: skip
    """Compares links, prints the table, writes the files, and ends the command."""
    from nanet.bench import compare, links, tables

    chosen, every = links.sent_to(links.chosen(names), boards_via), names.strip() == "all"
    comparison = compare.Comparison(chosen, every, search, repeats=repeats, repeat_s=duration_s, peers=peers, **(more or {}))
    if short:
        comparison = replace(comparison, repeats=1, repeat_s=0.5, sockperf_s=1.0, testpmd_s=2.0)
    result = (compare.run_rate if kind == "rate" else compare.run_latency)(comparison, _say)
    _say("")
    for line in (tables.rate_table if kind == "rate" else tables.latency_table)(result):
        _say(line)
    _finish(result, f"{kind}-links", compare.csv_rows(result), out, json_file, csv_file)
    raise typer.Exit(0 if compare.kept(result) else 1)


def _finish(
    result: Base,
    name: str,
    rows: list[tuple[str, str, float, str]],
    out: Path,
    json_file: Path | None,
    csv_file: Path | None,
) -> None:
    from nanet.report import write_report
    from nanet.result import files

    files.write_json(json_file, result)
    files.append_csv(csv_file, name, rows)
    write_report(result, out / f"bench-{name}.html")
    _say(f"report: {out / f'bench-{name}.html'}")


def _say(line: str) -> None:
    print(line, flush=True)
