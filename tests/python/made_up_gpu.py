# SPDX-License-Identifier: Apache-2.0
"""What the programs of `nanet bench gpu` write, made up, so that figures and reports can be tested without a GPU."""

from __future__ import annotations

from pathlib import Path

FACTS = "# program: bench_gpu_{part}\n# gpu: NVIDIA Made Up\n# cuda: 13.0\n# cpu: Some CPU\n"
SUMMARY = "count,min_us,p50_us,p90_us,p99_us,p999_us,p9999_us,max_us,mean_us,std_us"
WAYS = {"persistent": 1.0, "in_place_device": 0.9, "launch_mapped": 2.0, "graph_copied": 3.0, "launch_sync": 2.5, "graph_sync": 4.0}


def summary(p50_us: float) -> str:
    return (
        f"20000,{p50_us * 0.9},{p50_us},{p50_us * 1.1},{p50_us * 1.2},{p50_us * 2},{p50_us * 3},{p50_us * 9},{p50_us},{p50_us / 8}"
    )


def round_trip_csv(wrong: int = 0) -> str:
    text = FACTS.format(part="round_trip") + f"# finder: math\nway,events,{SUMMARY},wrong\nflag,0,{summary(2.5)},0\n"
    for events, us in ((16, 5.5), (1024, 8.5), (16384, 30.0)):
        text += "".join(f"{way},{events},{summary(us * factor)},{wrong}\n" for way, factor in WAYS.items())
    return text


def driver_path_csv() -> str:
    text = FACTS.format(part="driver_path") + f"work,path,in_flight,events,work_us,{SUMMARY},buffers_per_s,wrong\n"
    for work, events, work_us in (("dummy", 0, 200.0), ("rings", 1024, 0.0)):
        for in_flight in (1, 4):
            for path, us in (("driver", 215.0), ("persistent", 204.0)):
                text += f"{work},{path},{in_flight},{events},{work_us},{summary(us)},4800.0,0\n"
    return text


def loop_csv(lost: int = 0) -> str:
    text = FACTS.format(part="loop")
    text += "runtime,path,topology,finder,in_flight,burst_packets,rate_events_per_s,packets,packets_mean,sent_events_per_s,sent,answered,lost,wrong,"
    text += "p50_us,p99_us,p999_us,p9999_us,max_us,clean_p999_us,late_p99_us,longest_stall_us\n"
    for runtime in ("persistent", "launch", "graph"):
        for in_flight in (1, 4):
            for rate in (1_000_000, 10_000_000):
                for packets in (1, 8, 64):
                    us = 20.0 + packets
                    text += f"{runtime},mapped,pipelined,math,{in_flight},1,{rate},{packets},{packets * 1.01:.3f},{rate},{2 * rate},{2 * rate - lost},{lost},0,"
                    text += f"{us},{us * 2},{us * 3},{us * 4},{us * 9},{us * 2.5},3.0,40.0\n"
    return text


def finders_csv(differ: int = 0) -> str:
    """The copy's 4.0e12 B/s and the MATH fit's 3.6e12 with 20 hits: 0.9."""
    text = FACTS.format(part="finders")
    text += "finder,case,events_per_s,bytes_per_s,cpu_events_per_s,latency_1_us,latency_64_us,events_that_differ\n"
    for case, factor in (("single_ring", 1.0), ("two_rings_apart", 0.5), ("three_rings_apart", 0.25)):
        for finder, rate in (("math", 8e9), ("almagest", 6e8), ("mixture", 1.2e7)):
            text += f"{finder},{case},{rate * factor:g},,{rate * factor / 200:g},{4 / factor:g},{6 / factor:g},{differ}\n"
    text += "copy,of as many bytes,,4e+12,,,,\n"
    return text + "record_fit,12,4.6e+10,3.68e+12,,,,0\nrecord_fit,20,4.5e+10,3.6e+12,,,,0\n"


def merge_csv() -> str:
    text = FACTS.format(part="merge") + f"# finder: math\n# lost: 0\nway,events,{SUMMARY},rate_events_per_s,incomplete,wrong\n"
    for events, us in ((256, 30.0), (1024, 42.0), (4096, 74.0)):
        for way, factor in (("persistent", 1.0), ("launch_mapped", 1.25), ("graph_copied", 1.5), ("cpu", 5.0)):
            text += f"{way},{events},{summary(us * factor)},{1e6 * events / us / factor:.6f},0,0\n"
    return text


def trace_csv(persistent_calls: int = 0, allocations: int = 0, control_calls: int = 4000) -> str:
    text = FACTS.format(part="trace") + "runtime,function,calls,buffers\n"
    for runtime, calls in (("persistent", persistent_calls), ("launch", control_calls), ("graph", 2 * control_calls)):
        text += f"{runtime},operator new at set-up,9000,1000\n{runtime},operator new,{allocations},1000\n"
        text += f"{runtime},all of CUDA,{calls},1000\n" + (f"{runtime},cuLaunchKernel,{calls},1000\n" if calls else "")
    return text


def write_files(folder: Path) -> dict[str, Path]:
    """A CSV file of each part."""
    made = {"round_trip": round_trip_csv(), "driver_path": driver_path_csv(), "loop": loop_csv(), "finders": finders_csv(),
            "merge": merge_csv(), "trace": trace_csv()}  # fmt: skip
    for part, text in made.items():
        (folder / f"{part}.csv").write_text(text)
    return {part: folder / f"{part}.csv" for part in made}
