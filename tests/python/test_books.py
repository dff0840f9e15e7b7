# SPDX-License-Identifier: Apache-2.0
"""The balance: sent = answered + every named loss, whatever the counters say."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from made_up_nic import floor_counts, node_counts
from nanet.metrics.engine import STATS_HELP
from nanet.result import books

COUNTS = st.fixed_dictionaries({name: st.integers(0, 10**6) for name in (
    "events_lost", "events_unseen", "events_discarded", "events_unjudged", "events_bad_body", "events_answered"
)})  # fmt: skip


@given(st.integers(0, 10**7), st.integers(0, 10**7), COUNTS, st.booleans())
def test_it_always_adds_up(sent: int, answered: int, counters: dict[str, int], merged: bool) -> None:
    losses = books.balance(sent, answered, counters, merged=merged)
    assert set(losses) == set(books.EVENT_LOSSES)
    assert sent == answered + sum(losses.values())


def test_one_board() -> None:
    counters = {"events_lost": 32, "events_answered": 968, "events_unseen": 5}
    losses = books.balance(1000, 950, counters, merged=False)
    assert losses == {
        "events_lost": 32, "events_unseen": 0, "events_discarded": 0, "events_unjudged": 0, "events_bad_body": 0, "answers_lost": 18,
        "unexplained": 0,
    }  # fmt: skip


def test_merged_parts_are_no_events() -> None:
    counters = {"events_lost": 40, "events_answered": 980, "events_discarded": 18, "events_unseen": 2}
    losses = books.balance(1000, 980, counters, merged=True)
    assert losses["events_lost"] == 0
    assert losses["unexplained"] == 0


def test_a_run_that_accepted_nothing() -> None:
    none = dict.fromkeys((*books.PACKET_REFUSALS, "packets_accepted", "packets_marker"), 0)
    assert books.nothing_accepted(none) == ""  # and nothing came
    refused = none | {"packets_bad_checksum": 50, "packets_unknown_sender": 2}
    assert books.nothing_accepted(refused) == "no packet was accepted: packets_bad_checksum 50, packets_unknown_sender 2"
    assert books.nothing_accepted(refused | {"packets_accepted": 1}) == ""
    assert books.nothing_accepted(refused | {"packets_marker": 1}) == ""


def test_a_gpu_that_was_given_up() -> None:
    counters = {"events_answered": 600, "events_unjudged": 400}
    losses = books.balance(1000, 600, counters, merged=False)
    assert losses["events_unjudged"] == 400
    assert losses["unexplained"] == 0
    assert books.engine_losses(counters, merged=False) == {"events_unjudged": 400}


def test_packets_that_a_gpu_refused() -> None:
    counters = {"events_answered": 968, "events_bad_body": 32, "packets_bad_body": 2}
    losses = books.balance(1000, 968, counters, merged=False)
    assert (losses["events_bad_body"], losses["unexplained"]) == (32, 0)
    assert books.engine_losses(counters, merged=False) == {"events_bad_body": 32, "packets_bad_body": 2}


def test_parts_that_a_gpu_refused_are_no_events() -> None:
    """Their events lack a part: they are answered or dropped as such, or no one saw them."""
    counters = {"events_answered": 980, "events_discarded": 18, "events_unseen": 2, "events_bad_body": 40, "packets_bad_body": 3}
    losses = books.balance(1000, 980, counters, merged=True)
    assert (losses["events_bad_body"], losses["unexplained"]) == (0, 0)
    assert books.engine_losses(counters, merged=True) == {"events_discarded": 18, "events_unseen": 2, "packets_bad_body": 3}


def test_hits_that_had_no_room_are_a_loss() -> None:
    """The event was answered, from a part of its hits: no promise is kept over that."""
    counters = {"events_answered": 1000, "parts_overflow_hits": 1, "events_forwarded_cut": 2}
    assert books.engine_losses(counters, merged=True) == {"parts_overflow_hits": 1, "events_forwarded_cut": 2}
    assert books.balance(1000, 1000, counters, merged=True)["unexplained"] == 0


def test_what_nobody_counted_is_unexplained() -> None:
    assert books.balance(10, 7, {"events_answered": 7}, merged=False)["unexplained"] == 3


def test_text() -> None:
    assert books.lost_text({"events_lost": 0}) == "0"
    assert books.lost_text({"events_lost": 1234, "answers_lost": 2}) == "events_lost 1,234, answers_lost 2"


def test_a_run_says_what_its_kind_of_processor_did() -> None:
    counters = {"packets_accepted": 1200, "events_received": 9, "slices_whole": 2, "hits_used": 5000, "events_triggered": 1}
    assert books.headline("km3", counters) == "1,200 packets accepted, 2 whole slices, 5,000 hits, 1 events triggered"
    assert (
        books.headline("rich", counters)
        == books.headline("own", counters)
        == "1,200 packets accepted, 9 events, 0 answered, 0 rings"
    )


def test_names_are_counters() -> None:
    from nanet import _core

    known = {name for name, _, _ in _core.counter_table()}
    assert known >= {name for words in books._HEADLINES.values() for name in words}
    assert known >= {*books.CUTS, *books.PACKET_LOSSES, *books.PACKET_REFUSALS}
    assert known >= set(books.EVENT_LOSSES) - {"answers_lost", "unexplained"}


def test_links_know_of_losses_too() -> None:
    quiet = dict.fromkeys(STATS_HELP, 0) | {"rx_kernel_dropped": 9}
    snapshot = {
        "counters": {"events_lost": 1, "packets_accepted": 5},
        "links": [
            {"name": "a", "stats": quiet, "nic_counts": node_counts()}, {"name": "b", "stats": quiet, "nic_counts": []},
            {"name": "answers", "stats": {"tx_refused": 3, "tx_dropped": 2, "rx_kernel_dropped": 0}, "nic_counts": []},
        ],
    }  # fmt: skip
    totals = books.totals(snapshot, raw_links={"b"})
    assert totals["kernel_dropped"] == 9  # of b alone: a's are in packets_lost_kernel
    assert books.engine_losses(totals, merged=False) == {
        "events_lost": 1, "answers_refused": 3, "answers_dropped": 2, "kernel_dropped": 9,
        "node_parts_dropped": 3, "node_events_partial": 10, "node_events_cut": 1,
    }  # fmt: skip


def test_what_fibres_of_floors_lost_has_names() -> None:
    quiet = dict.fromkeys(STATS_HELP, 0)
    totals = books.totals({"counters": {}, "links": [{"name": "a", "stats": quiet, "nic_counts": floor_counts()}]})
    assert books.engine_losses(totals, merged=False) == {
        "fibre_packets_refused": 3, "fibre_packets_held": 2, "fibre_frames_dropped": 2, "fibre_packets_dropped": 2,
    }  # fmt: skip


def test_a_torus_that_ended_is_a_loss_at_either_end() -> None:
    quiet = dict.fromkeys(STATS_HELP, 0)

    def losses(name: str, unacknowledged: int, held: int = 0) -> dict[str, int]:
        slots = {"name": "slots", "port": None, "counts": {"unacknowledged": unacknowledged, "held": held, "ended": 1}}
        totals = books.totals({"counters": {}, "links": [{"name": name, "stats": quiet, "nic_counts": [slots]}]})  # type: ignore[typeddict-item,typeddict-unknown-key]
        return books.engine_losses(totals, merged=False)

    assert losses("forward", 63) == {"torus_unacknowledged": 63, "torus_ended": 1}
    assert losses("torus", 0) == {"torus_ended": 1}
    assert losses("torus", 0, held=4) == {"torus_held": 4, "torus_ended": 1}


def test_what_only_a_link_can_say_breaks_the_promise() -> None:
    """A tail that no sequence number reaches, and what a recording passes over: each under its own name, none of a raw link twice."""
    stats = {
        "rx_kernel_dropped": 4, "rx_dropped_unseen": 3, "rx_skipped_not_udp": 8, "rx_skipped_port": 9, "rx_skipped_fragment": 5,
        "rx_skipped_cut": 6, "rx_bytes_damaged": 7,
    }  # fmt: skip
    clean = dict.fromkeys(stats, 0)
    links = [{"name": "a", "stats": stats, "nic_counts": []}]
    links.append({"name": "b", "stats": clean | {"rx_kernel_dropped": 2, "rx_dropped_unseen": 2}, "nic_counts": []})
    totals = books.totals({"counters": {}, "links": links}, raw_links={"b"})
    assert books.engine_losses(totals, merged=False) == {
        "kernel_dropped": 2, "kernel_dropped_unseen": 3, "file_fragments": 5, "file_cut": 6, "file_bytes_damaged": 7,
    }  # fmt: skip
