# SPDX-License-Identifier: Apache-2.0
"""The verdict on a soak: packets from hop to hop over all lives of the engine, what speaks against it, and the table at its end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypedDict

from nanet.result import books, hops
from nanet.result.keys.emulator import EmulatorResult
from nanet.soak.books import HEAD, STALE, row_text
from nanet.soak.keys import Flatness, Judged, Outcome, PacketBalance, Seen, TableRow, WithTable
from nanet.soak.lives import Accounts, Life, add_up, expected_packets

FAULTS = ("loss", "duplicate", "reorder", "corrupt", "truncate", "delay")
DONE = {
    "loss": "lost", "duplicate": "duplicated", "reorder": "reordered", "corrupt": "corrupted", "truncate": "truncated", "delay": "delayed",
}  # fmt: skip
"""Fault of packets -> the injector's count of it."""
EXIT_CODES = {"passed": 0, "failed": 1, "inconclusive": 3}
"""2 is every command's for what cannot be done."""
BUSY_SHARE = 0.05  # of the run: above, a note says that the machine had other things to do
HOST_SHARE_MAX = 0.2
"""Of the run: above, nothing was shown. A stall excuses what is lost within WINDOW_S of it, so with a fifth of the time stalled, in however
short pieces, nearly every loss of the engine's own would have been put down to the machine."""


def packet_balance(emulated: EmulatorResult, lives: Sequence[Life], gap_packets: int = 0) -> PacketBalance:
    """Packets from hop to hop; books 1 and 2 of docs/design/books.md. All residues are 0 when all is told.

    gap_packets: the most that may be in no book because an engine was killed, or started again.
    """
    boards, sent = int(emulated["config"]["boards"]), int(emulated["packets_sent"])
    markers, counters = int(emulated["markers_sent"]), [life.counters for life in lives]
    parts = [_of_result(life.result) if life.result is not None else _of_hops(life) for life in lives]
    at_socket = sum(part["at_socket"] for part in parts)
    missing = sent - sum(expected_packets(one) for one in counters)
    if len(lives) == 1 and lives[0].result is not None:
        sources = sum(abs(sent // boards - expected_packets(source["counters"])) for source in lives[0].result["sources"])
    else:
        sources = max(0, missing - gap_packets) + max(0, -missing)
    return {
        "sent": sent,
        "markers_sent": markers,
        "lost_before_socket": sent + markers - at_socket,
        "at_socket": at_socket,
        "injected": {name: sum(part["injected"].get(name, 0) for part in parts) for name in ("passed", *DONE.values(), "held")},
        "delivered": sum(part["delivered"] for part in parts),
        "accepted": sum(int(one.get("packets_accepted", 0)) for one in counters),
        "clop_full": sum(int(one.get("packets_clop_full", 0)) for one in counters),
        "refused": books.refusals(add_up(counters)),
        "lost_by_sequence": sum(int(one.get(name, 0)) for one in counters for name in ("packets_lost_kernel", "packets_lost_network")),
        "residues": {
            "sources": sources,
            "injector": sum(part["injector"] for part in parts),
            "link": sum(part["link"] for part in parts),
        },
    }  # fmt: skip


class _Part(TypedDict):
    """The packets of one life."""

    at_socket: int
    injected: dict[str, int]
    delivered: int
    injector: int
    link: int


def _of_result(engine: Accounts) -> _Part:
    """A life that was stopped."""
    inputs = [link for link in engine["links"] if link["faults"] is not None]
    faults = [link["faults"] or {} for link in inputs]
    delivered = hops.delivered(inputs)
    return {
        "at_socket": sum(int(link["stats"]["rx_packets"]) for link in inputs),
        "injected": {name: sum(int(of_link[name]) for of_link in faults) for name in ("passed", *DONE.values(), "held")},
        "delivered": delivered,
        "injector": sum(hop.unexplained for hop in hops.fault_injector(inputs)),
        "link": hops.decoder(delivered, engine["counters"]).unexplained,
    }


def _of_hops(life: Life) -> _Part:
    """A life that was killed: what its newest reading tells. What was between two hops then is not unexplained."""
    injector = life.hop("fault injector")
    named = injector["named"]
    return {
        "at_socket": int(life.hop("link")["out"]),
        "injected": {"lost": int(named.get("injected_loss", 0)), "held": int(named.get("held", 0))},
        "delivered": int(life.hop("decoder and buffers")["in"]),
        "injector": int(injector["unexplained"]),
        "link": int(life.hop("decoder and buffers")["unexplained"]),
    }


def packets_row(result: Seen) -> TableRow:
    """The row of the table for faults of packets that come and go all the time: a time is a phase."""
    times = sum(count for phase, count in result["phases"].items() if phase != "off")
    balanced = not result["unexplained_events"] and not result["unexplained_packets"]
    losses = {name: count for name, count in result["losses"].items() if count and name != "unexplained"}
    return {
        "fault": "packets", "times": times, "survived": times if balanced else 0, "losses": losses, "recover_longest_s": None, "not_run": None,
    }  # fmt: skip


def verdict_reasons(result: Seen, *, may_be_incomplete: bool) -> list[str]:
    """Why the soak was not passed, a sentence each."""
    reasons = list(result["faults"])
    of_packets = result["packets"]["residues"]
    residues = {"sources": of_packets["sources"], "injector": of_packets["injector"], "link": of_packets["link"]}
    if result["unexplained_events"]:
        reasons.append(f"{result['unexplained_events']:,} events are not in any counter")
    if result["unexplained_packets"]:
        reasons.append(f"the books of packets do not balance: {books.lost_text(residues)}")
    reasons += [
        f"{one['fault']} at {one['at_s']:.0f} s: {problem}" for one in result["machine_faults"] for problem in one["problems"]
    ]
    if result["lost_outside_stalls"]:
        reasons.append(f"lost although the machine did not stall: {books.lost_text(result['lost_outside_stalls'])}")
    reasons += _answers_lost(result)
    wrong = {
        name: count for name, count in _mistakes(result).items() if count and not (may_be_incomplete and name == "wrong_answers")
    }
    if wrong:
        reasons.append(f"wrong answers: {books.lost_text(wrong)}")
    reasons += [
        _growth_text(name, flat) for name, flat in flats(result).items() if not flat["flat"] and not _too_short(name, result)
    ]
    done = result["packets"]["injected"]
    idle = [fault for fault in FAULTS if result["phases_counted"].get(fault) and not done[DONE[fault]]]
    if idle:
        reasons.append(f"faults that were switched on but did nothing: {', '.join(idle)}")
    if not result["sent"]:
        reasons.append("nothing was sent")
    return reasons


def flats(result: Seen) -> dict[str, Flatness]:
    """By name of the series."""
    flat = result["flat"]
    return {
        "engine_rss_bytes": flat["engine_rss_bytes"],
        "emulator_rss_bytes": flat["emulator_rss_bytes"],
        "engine_descriptors": flat["engine_descriptors"],
        "emulator_descriptors": flat["emulator_descriptors"],
    }


def _mistakes(result: Seen) -> dict[str, int]:
    """Without answers that were old because of a fault."""
    stale = sum(int(one["losses"].get(STALE, 0)) for one in result["machine_faults"])
    found = {name: int(count) for name, count in result["mistakes"].items()}
    return found | ({"stale_answers": found["stale_answers"] - stale} if stale else {})


def _answers_lost(result: Seen) -> list[str]:
    """Answers that did not arrive, although no socket dropped them, and no link was down."""
    lost = int(result["losses"]["answers_lost"])
    lost -= sum(int(one["losses"].get("answers_lost", 0)) for one in result["machine_faults"] if one["fault"] == "link")
    sides = (result["lost_in_stalls"], result["lost_outside_stalls"], result["lost_in_faults"])
    if lost <= 0 or any(side.get("answers_kernel_dropped") for side in sides):
        return []
    return [f"{lost:,} answers did not arrive, and no socket says that it dropped them"]


def late_reasons(result: Seen) -> list[str]:
    """Faults after which the loop did not reach its rate in time. A machine that had no time for the loop explains them."""
    return [
        f"{one['fault']} at {one['at_s']:.0f} s: "
        + (
            "the rate was not reached again"
            if one["recover_s"] is None
            else f"the rate was reached again after {one['recover_s']:.1f} s"
        )
        + f", not within {result['recover_within_s']:g} s"
        for one in result["machine_faults"]
        if one["late"]
    ]


def stalled_share(result: Seen) -> float:
    """The share of the run for which the machine kept the engine or the boards from running, whichever was longer."""
    elapsed_s = float(result["elapsed_s"])
    return max(result["stalls_s"].values(), default=0.0) / elapsed_s if elapsed_s else 0.0


def outcome_of(result: Seen, reasons: Sequence[str], late: Sequence[str] = ()) -> Outcome:
    """`failed` for any reason; else `inconclusive` where the machine stalled for too much of the run to show anything; else `failed` for what
    came late; else `passed`."""
    if reasons:
        return "failed"
    if stalled_share(result) > result["host_share_max"]:
        return "inconclusive"
    return "failed" if late else "passed"


def verdict_text(result: Judged) -> str:
    """The verdict as a sentence."""
    judged = result["verdict"]
    if judged["outcome"] == "failed":
        return "Soak failed: " + "; ".join(judged["reasons"]) + "."
    if judged["outcome"] == "inconclusive":
        return (
            f"Soak inconclusive: the books balance, but the machine stalled for {stalled_share(result):.0%} of the time "
            f"(above {result['host_share_max']:.0%} a loss or a delay cannot be told from one caused by the machine) run it on a quiet machine."
        )
    missing = [row["fault"] for row in result["table"] if row["not_run"]]
    tried = [row["fault"] for row in result["table"] if not row["not_run"]]
    return (
        "Soak passed"
        + (f": {', '.join(tried)} survived" if tried else "")
        + (f"; not run: {', '.join(missing)}" if missing else "")
        + "."
    )


def early_note(result: Seen) -> str | None:
    """Says when a signal ended the soak: then it has passed only as far as it got."""
    if not result["stopped_early"]:
        return None
    missed = [fault for fault in FAULTS if not result["phases"].get(fault)]
    missed += result["machine_faults_missed"]
    never = f", and {', '.join(missed)} never came" if missed else ""
    return f"stopped after {result['elapsed_s']:.0f} of {result['duration_s']:.0f} s (a signal arrived{never}) only that much was checked"


def stall_note(result: Seen) -> str | None:
    """Says when the machine was so busy with other things that the run tells little about losses."""
    if stalled_share(result) <= BUSY_SHARE:
        return None
    longest_s = max(result["stalls_s"].values())
    return (
        f"something else had the cores for {longest_s:.1f} of {result['elapsed_s']:.1f} s (losses in that time are attributed to the machine) "
        "run it on a quiet machine"
    )


def _too_short(name: str, result: Seen) -> bool:
    """Whether a series of the engine has too few samples because engines came and went."""
    return name.startswith("engine") and flats(result)[name]["growth"] is None and result["engine_lives"] > 1


def lives_note(result: Seen) -> str | None:
    """Says when no engine lived for long enough to judge its memory."""
    if not any(_too_short(name, result) for name in flats(result)):
        return None
    return "the engine's memory was not judged (none lived for long enough) use --faults packets to look for leaks, or a longer --fault-every"


def _growth_text(name: str, flat: Flatness) -> str:
    who, _, what = name.partition("_")
    if flat["growth"] is None:
        return f"{what} of the {who}: too few samples after the warm-up"
    return f"{what} of the {who} grew by {flat['growth']:,} after the warm-up, more than {flat['growth_max']:,}"


def table(result: WithTable) -> list[str]:
    """The result as lines."""
    packets, latency = result["packets"], result["latency_us"] or {}
    injected = {name: count for name, count in packets["injected"].items() if name not in ("passed", "held")}
    lines = [
        f"{'sent':22}{result['sent']:>18,} events in {packets['sent']:,} packets, {result['elapsed_s']:.0f} s",
        f"{'answered':22}{result['answered']:>18,}",
        *(f"{name:22}{count:>18,}" for name, count in result["losses"].items() if count),
        f"{'faults injected':22}{sum(injected.values()):>18,} packets: {books.lost_text(injected)}",
        f"{'unexplained':22}{result['unexplained_events']:>18,} events, {result['unexplained_packets']:,} packets",
        f"{'overflow':22}  in stalls {books.lost_text(result['lost_in_stalls'])};  in faults {books.lost_text(result['lost_in_faults'])}"
        f";  outside {books.lost_text(result['lost_outside_stalls'])}",
        f"{'stalls':22}  " + ", ".join(f"{who} {seconds:.3f} s" for who, seconds in result["stalls_s"].items()),
    ]
    for name, flat in flats(result).items():
        unit, scale = ("MiB", 2.0**20) if name.endswith("bytes") else ("", 1.0)
        start, end = flat["start"], flat["end"]
        if start is not None and end is not None:
            lines.append(
                f"{name.removesuffix('_bytes'):22}{start / scale:>18,.1f} -> {end / scale:,.1f} {unit}"
                f"{'' if flat['flat'] else '  GREW'}"
            )
    if latency:
        lines.append(
            f"{'latency':22}  p50 {latency['p50']:.1f}  p99 {latency['p99']:.1f}  p99.9 {latency['p99_9']:.1f}  max {latency['max']:.0f} us"
        )
    return lines + (["", HEAD, *map(row_text, result["table"])] if result["table"] else [])
