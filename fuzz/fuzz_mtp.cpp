// SPDX-License-Identifier: Apache-2.0
// Any bytes as an MTP packet: first as they are, then with length and count that fit. What is accepted is walked, written
// again, and must read the same.
#include <vector>

#include "fuzz_common.hpp"
#include "nanet/wire/mtp.hpp"

namespace {

using namespace nanet::wire;
using nanet::fuzz::is_refused;
using nanet::fuzz::require;

std::vector<Primitive> primitives_of(const MtpView& view) {
  std::vector<Primitive> primitives;
  for_each_primitive(view, [&](Primitive primitive) { primitives.push_back(primitive); });
  return primitives;
}

bool check(std::span<const std::byte> payload) {
  MtpView view;
  if (MtpView::parse(payload, view) != ParseError::none) return false;
  const std::vector<Primitive> primitives = primitives_of(view);
  require(primitives.size() == view.primitive_count(), "the walk finds as many primitives as the header says");
  std::vector<std::byte> room(payload.size());
  MtpWriter writer(room);
  writer.begin(view.source_id(), view.source_sub_id(), view.first_timestamp());
  for (const Primitive& primitive : primitives) require(writer.add(primitive), "no more room is needed than was used");
  const auto written = writer.finish();
  MtpView again;
  require(MtpView::parse(written, again) == ParseError::none, "what is written is accepted");
  require(primitives_of(again) == primitives, "and reads the same");
  require(again.source_id() == view.source_id() && again.source_sub_id() == view.source_sub_id(), "header too");
  return true;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  nanet::fuzz::Input input(data, size);
  if (size < kMtpHeaderBytes) require(is_refused([&] { MtpWriter writer(input.bytes()); }), "no room for a packet");
  check(input.bytes());
  if (size >= kMtpHeaderBytes && size <= kMtpBytesMax && size % kMtpWordBytes == 0) {
    std::size_t primitive_count = 0;
    for (std::size_t i = kMtpHeaderBytes; i < size; i += kMtpWordBytes) primitive_count += data[i + 3] != 0;
    store_le(input.bytes().data() + 4, static_cast<std::uint16_t>(size));
    store_le(input.bytes().data() + 6, static_cast<std::uint8_t>(primitive_count));
    require(check(input.bytes()) == (primitive_count <= kMtpPrimitivesMax), "good length and count are accepted");
  }
  return 0;
}
