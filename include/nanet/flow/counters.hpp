// SPDX-License-Identifier: Apache-2.0
// Every counter of the data path, declared once: name, unit, help. Counters are written by one thread and read by any.
//
// Books, per source:  packets expected = packets_accepted + packets_clop_full + packets_lost_kernel + packets_lost_network
//                     packets received = packets_accepted + every other packets_* reason below except the two lost ones
// Books, per event:   events sent = events_answered + every events_* reason below that ends an event
// docs/design/books.md says which counters stand on which side.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace nanet::flow {

// X(name, unit, help): append only at the end of a group; the order is what people see.
#define NANET_COUNTERS(X)                                                                                   \
  /* receive, per source */                                                                                 \
  X(packets_accepted, "packets", "good packets handed to the processor")                                    \
  X(bytes_accepted, "bytes", "payload bytes of accepted packets")                                           \
  X(events_received, "events", "events (or parts of events) in accepted packets")                           \
  X(packets_lost_kernel, "packets", "missing by sequence number where the socket reported an overflow")     \
  X(packets_lost_network, "packets", "missing by sequence number, lost before this socket")                 \
  X(events_lost, "events", "events (or parts) in missing or dropped packets, by their running number")      \
  X(packets_reordered, "packets", "accepted although a later packet came first")                            \
  X(packets_duplicate, "packets", "dropped: this sequence number was already accepted")                     \
  X(packets_late, "packets", "dropped: older than the reordering window")                                   \
  X(packets_clop_full, "packets", "dropped: no free buffer in the CLOP")                                    \
  X(packets_marker, "packets", "start-of-run and end-of-run markers (they carry no events)")                \
  X(source_restarts, "times", "the source began a new run")                                                 \
  /* receive, packets that are put together to units: one link's streams together */                        \
  X(packets_overlap, "packets", "refused: some of their bytes were there, and some were not")               \
  X(packets_bad_place, "packets", "refused: they end outside their unit")                                   \
  X(packets_bad_unit, "packets", "refused: they contradict the length of their unit")                       \
  X(packets_unit_too_long, "packets", "refused: their unit is longer than a buffer")                        \
  X(packets_no_stream, "packets", "refused: of a further stream than streams_max, and none was idle")       \
  X(packets_scattered, "packets", "refused: their unit is in too many separate pieces")                     \
  X(units_begun, "units", "a packet of them came, and there was a buffer for it")                           \
  X(units_complete, "units", "every byte came")                                                             \
  X(units_timed_out, "units", "closed incomplete: their first packet came timeout_us ago")                  \
  X(units_overflow, "units", "closed incomplete: their place was needed by a newer unit or another stream") \
  X(units_flushed, "units", "closed incomplete: the run ended or was flushed")                              \
  X(units_handed_over, "units", "given to the processor, complete or not")                                  \
  X(units_discarded, "units", "incomplete and not given to the processor")                                  \
  X(units_no_buffer, "units", "dropped whole: no free buffer in the CLOP when they began")                  \
  X(units_lost, "units", "no packet of them came; known from unit_step")                                    \
  X(streams_evicted, "streams", "forgotten: idle for stream_idle_us when another stream needed the place")  \
  X(resends_asked, "packets", "missing ones that their sender was asked for")                               \
  X(resends_came, "packets", "of resends_asked, those that came before their unit was closed")              \
  X(resends_not_came, "packets", "of resends_asked, those that had not come when their unit was closed")    \
  X(resend_requests, "requests", "that were made for them, each for packets in a row")                      \
  /* receive, per link: the source cannot be trusted or is not known */                                     \
  X(packets_bad_length, "packets", "refused: length does not fit the format")                               \
  X(packets_bad_format, "packets", "refused: unknown format, flag or count in the header")                  \
  X(packets_bad_checksum, "packets", "refused: checksum does not match")                                    \
  X(packets_truncated, "packets", "refused: longer than packet_bytes_max, or cut")                          \
  X(packets_unknown_source, "packets", "refused: source is not in the configuration")                       \
  X(packets_unknown_sender, "packets", "refused: from an address that is not in the configuration")         \
  X(packets_wrong_queue, "packets", "refused: the kernel coalesced them with one of another queue's key")   \
  X(packets_unknown_stream, "packets", "refused: their stream is not in the configuration")                 \
  /* event building */                                                                                      \
  X(parts_merged, "parts", "parts put into an open event")                                                  \
  X(parts_late, "parts", "dropped: their event is closed already")                                          \
  X(parts_duplicate, "parts", "dropped: this source's part is there already")                               \
  X(parts_no_room, "parts", "dropped: no room for a new event before the closed ones are judged")           \
  X(parts_overflow_hits, "parts", "cut: the event has no room for more hits")                               \
  X(events_complete, "events", "every part came")                                                           \
  X(events_missing_parts, "events", "closed by the time window with a part missing")                        \
  X(events_overflow, "events", "closed early with a part missing: too many open events")                    \
  X(events_unseen, "events", "no part of them came; known from the sources' running numbers")               \
  X(packets_bad_body, "packets", "accepted by their head, refused on the GPU: checksum or event lengths")   \
  X(events_bad_body, "events", "events (or parts of events) in packets_bad_body")                           \
  X(parts_unjudged, "parts", "not merged: a GPU was given up with them")                                    \
  /* decision */                                                                                            \
  X(hits_unmapped, "hits", "ignored: no photomultiplier at that channel")                                   \
  X(events_answered, "events", "a primitive was written for them")                                          \
  X(events_discarded, "events", "not answered: incomplete, and the configuration says to drop such events") \
  X(rings_found, "events", "answered with a ring")                                                          \
  X(rings_electron, "events", "answered with an electron-like ring")                                        \
  X(events_unjudged, "events", "not answered: a GPU was given up with them")                                \
  X(hits_masked, "hits", "ignored: the mask has their channel")                                             \
  X(rings_over_answer, "events", "answered with four rings, and there were more")                           \
  X(rings_outside, "rings", "refused: a radius or a centre outside the range of the cuts")                  \
  /* time slices of a detector, put together from the units of its parts */                                 \
  X(units_used, "units", "in a slice whose data were judged")                                               \
  X(units_passed_over, "units", "of kinds of data that the processor has no use for")                       \
  X(units_of_no_part, "units", "refused: of a stream that the detector does not have")                      \
  X(units_too_late, "units", "refused: their slice was closed already, or they were in it already")         \
  X(units_bad_time, "units", "refused: their time does not fit the number of their slice, or the run")      \
  X(units_absent, "units", "not there when their slice was closed")                                         \
  X(slices_whole, "slices", "closed with every byte of every part of the detector")                         \
  X(slices_incomplete, "slices", "closed with a part missing, or bytes of one")                             \
  X(slices_missing, "slices", "no unit of them came, and later ones did")                                   \
  X(slices_restarted, "slices", "at which half of the parts say another beginning of the run")              \
  X(records_bad, "records", "left out: no such photomultiplier, or cut")                                    \
  X(hits_used, "hits", "over threshold, and given to the trigger")                                          \
  X(hits_below_threshold, "hits", "left out: less charge than the trigger looks at")                        \
  X(hits_bad_time, "hits", "left out: too long before or after their slice")                                \
  X(hits_no_room, "hits", "left out: more in one part and slice than there is room for")                    \
  X(seeds_found, "seeds", "coincidences and large hits, from which events are made")                        \
  X(seeds_no_room, "seeds", "left out: more in one slice than there is room for")                           \
  X(events_triggered, "events", "found by the trigger")                                                     \
  X(events_no_room, "events", "found and not sent: more in one slice than there is room for")               \
  /* answers */                                                                                             \
  X(answers_sent, "packets", "answer packets given to the link")                                            \
  X(answers_waited, "packets", "had to wait for a free TX descriptor")                                      \
  /* forwarding */                                                                                          \
  X(events_forwarded, "events", "in packets for the next node that the link took")                          \
  X(events_forwarded_cut, "events", "written for the next node with their first 128 hits only")             \
  X(packets_forwarded, "packets", "packets of events (and run markers) given to the link")                  \
  X(forwards_waited, "packets", "had to wait for a free TX descriptor")                                     \
  X(events_unsent, "events", "in packets for the next node that the link dropped")

enum class Counter : std::uint16_t {
#define X(name, unit, help) name,
  NANET_COUNTERS(X)
#undef X
};

struct CounterInfo {
  std::string_view name;
  std::string_view unit;
  std::string_view help;
};

inline constexpr auto kCounterTable = std::to_array<CounterInfo>({
#define X(name, unit, help) {#name, unit, help},
    NANET_COUNTERS(X)
#undef X
});
inline constexpr std::size_t kCounterCount = kCounterTable.size();

// One writer, any readers: a relaxed load and store, never a locked instruction.
class alignas(64) Counters {
 public:
  void add(Counter counter, std::uint64_t n = 1) {
    auto& value = values_[static_cast<std::size_t>(counter)];
    value.store(value.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
  }
  void set(Counter counter, std::uint64_t n) { values_[static_cast<std::size_t>(counter)].store(n, std::memory_order_relaxed); }
  std::uint64_t value(Counter counter) const { return values_[static_cast<std::size_t>(counter)].load(std::memory_order_relaxed); }

 private:
  std::array<std::atomic<std::uint64_t>, kCounterCount> values_{};
};

}  // namespace nanet::flow
