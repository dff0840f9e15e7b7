// SPDX-License-Identifier: Apache-2.0
// Any bytes as a MEP: as they are, and with a length that fits, so that the fuzzer gets past it; and as the data of one event.
// What is accepted is walked, and its events are built again from what was read.
#include <algorithm>
#include <vector>

#include "fuzz_common.hpp"
#include "wire/mep.hpp"

namespace {

using namespace nanet::wire;
using nanet::fuzz::require;

std::vector<MepHit> check_data(std::span<const std::byte> data, std::uint32_t timestamp) {
  TdcView view;
  if (TdcView::parse(data, view) != ParseError::none) return {};
  std::size_t leading = 0;
  for_each_tdc_word(view, [&](const TdcWord& word) {
    require(word.channel < kTdcChannels && word.time_ticks < 1u << 19, "a word is in range");
    leading += word.edge == TdcEdge::leading;
  });
  std::vector<MepHit> hits(data.size() / kTdcWordBytes);
  const std::size_t count = tdc_hits(view, timestamp, 3, hits);
  require(count == leading && count <= hits.size(), "a hit for each leading edge");
  hits.resize(count);
  std::vector<MepHit> few(count / 2);
  require(tdc_hits(view, timestamp, 3, few) == count, "all are counted, whatever room there is");
  for (std::size_t i = 0; i < few.size(); ++i)
    require(few[i].channel == hits[i].channel && few[i].time_ticks == hits[i].time_ticks, "and the first are the same");
  for (const MepHit& hit : hits) {
    require(hit.channel >= 1536 && hit.channel < 2048, "a channel of board 3");
    require(hit.time_ticks >= -kTdcTimeRange && hit.time_ticks < kTdcTimeRange && hit.width_ticks >= 0, "a time in range");
  }
  return hits;
}

// Channel and time of each, in order.
std::vector<std::pair<unsigned, int>> edges_of(std::span<const MepHit> hits) {
  std::vector<std::pair<unsigned, int>> edges;
  for (const MepHit& hit : hits) edges.emplace_back(hit.channel, hit.time_ticks);
  std::ranges::sort(edges);
  return edges;
}

// An event made of hits that were read is one of the same hits.
void check_built(std::span<const MepHit> hits, std::uint32_t timestamp) {
  MepBuilder builder;
  builder.begin({.source_sub_id = 3});
  if (!builder.add_event(timestamp, hits, 1)) return;  // more frames than a block can have
  MepView view;
  require(MepView::parse(builder.finish(), view) == ParseError::none, "what is built of hits is accepted");
  for_each_event(view, [&](const MepEvent& event) {
    TdcView data;
    require(TdcView::parse(event.data, data) == ParseError::none, "its data too");
    std::vector<MepHit> again(event.data.size() / kTdcWordBytes);
    again.resize(tdc_hits(data, timestamp, 3, again));
    require(edges_of(again) == edges_of(hits), "and has the same hits");
  });
}

void check(std::span<const std::byte> payload) {
  MepView view;
  if (MepView::parse(payload, view) != ParseError::none) return;
  require(mep_bytes(payload) == payload.size(), "the length is the whole packet's");
  MepBuilder builder;
  builder.begin(view.header());
  std::size_t events = 0;
  for_each_event(view, [&](const MepEvent& event) {
    ++events;
    check_built(check_data(event.data, event.timestamp), event.timestamp);
    require(builder.add_event_data(event.timestamp, event.data), "an accepted event fits");
  });
  require(events == view.header().event_count, "the walk finds as many events as the header says");
  MepView again;
  require(MepView::parse(builder.finish(), again) == ParseError::none, "what is built is accepted");
  require(builder.finish().size() == payload.size(), "and as long");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  nanet::fuzz::Input input(data, size);
  check(input.bytes());
  check_data(input.bytes(), 0);
  if (size >= kMepHeaderBytes && size <= kMepBytesMax) {
    store_le(input.bytes().data() + 4, static_cast<std::uint16_t>(size));
    check(input.bytes());
  }
  return 0;
}
