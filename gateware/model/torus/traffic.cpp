// SPDX-License-Identifier: Apache-2.0
#include "model/torus/traffic.hpp"

#include <cmath>

namespace nanet::torus {
namespace {

constexpr std::uint32_t kTypeData = 1, kTypeHeaderOnly = 0x10;
constexpr unsigned kNumberBits = 16, kBirthBits = 32;

}  // namespace

Source::Source(const Shape& shape, std::uint32_t node) : shape_(shape), node_(node), numbers_(shape.nodes()) {}

void Source::set_load(const Load& load) {
  load_ = load;
  random_ = Random(load.seed * 0x1'0000'0001u + node_);
  const double packets = load.offered / packet_words(load.payload_bytes);  // a cycle
  threshold_ = packets >= 1.0 ? ~std::uint64_t{0} : static_cast<std::uint64_t>(std::ldexp(packets, 64));
}

void Source::stop() {
  threshold_ = 0;
  const bool begun = words_ != 0;
  while (queue_.size() > (begun ? 1 : 0)) queue_.pop_back();
}

void Source::push(std::uint32_t to, std::uint32_t payload_bytes, std::uint64_t cycle) {
  queue_.push_back({cycle, to, payload_bytes});
  if (words_ == 0) begin();
}

void Source::be_born(std::uint64_t cycle, const Window& window) {
  if (threshold_ == 0 || random_.next() >= threshold_) return;
  if (window.has(cycle)) ++born_;
  push(destination(load_.pattern, shape_, node_, random_.next()), load_.payload_bytes, cycle);
}

void Source::begin() {
  const Waiting& next = queue_.front();
  header_ = {.process = node_,
             .to = shape_.place(next.to),
             .packet_type = kTypeData | (next.payload_bytes == 0 ? kTypeHeaderOnly : 0),
             .bytes = next.payload_bytes,
             .address = ((next.cycle & 0xFFFF'FFFF) << kNumberBits) | numbers_[next.to]++};
  word_ = pack(header_);
  crc_ = PacketCrc(word_);
  place_ = 0;
  words_ = packet_words(next.payload_bytes);
}

void Source::taken() {
  if (last()) {
    ++injected_;
    queue_.pop_front();
    words_ = 0;
    if (!queue_.empty()) begin();
    return;
  }
  ++place_;
  if (last()) {
    word_ = crc_.footer();
  } else {
    word_ = payload_word(header_, place_);
    crc_.add(word_);
  }
}

void Latencies::add(const Latencies& other) {
  for (std::size_t k = 0; k < kCycles; ++k) counts_[k] += other.counts_[k];
  sum_ += other.sum_;
  count_ += other.count_;
  max_ = max_ > other.max_ ? max_ : other.max_;
  min_ = min_ < other.min_ ? min_ : other.min_;
}

std::uint64_t Latencies::at(double share) const {
  const auto wanted = static_cast<std::uint64_t>(std::ceil(share * static_cast<double>(count_)));
  std::uint64_t seen = 0;
  for (std::size_t k = 0; k < kCycles; ++k) {
    seen += counts_[k];
    if (seen >= wanted) return k + 1 == kCycles ? max_ : k;
  }
  return max_;
}

Sink::Sink(const Shape& shape, std::uint32_t node) : shape_(shape), node_(node), numbers_(shape.nodes()), from_(shape.nodes()) {}

void Sink::take(const Word& word, bool last, std::uint64_t cycle, const Window& window) {
  if (window.has(cycle)) ++window_words_;
  if (place_ == 0) {
    take_header(word, cycle);
    if (last) ++wrong_;  // a packet has two words or more
  } else if (last) {
    take_footer(word, cycle, window);
  } else if (place_ <= payload_words(header_.bytes)) {
    if (word != payload_word(header_, place_)) differs_ = true;
    crc_.add(word);
  }
  place_ = last ? 0 : place_ + 1;
}

void Sink::take_header(const Word& word, std::uint64_t cycle) {
  header_ = unpack(word);
  crc_ = PacketCrc(word);
  header_cycle_ = cycle;
  const bool known = header_.process < shape_.nodes();
  differs_ = !known || header_.to != shape_.place(node_) || header_.vc != 0 || header_.bytes > kPayloadBytesMax ||
             header_.hops != shape_.distance(header_.process, node_);
  if (!known) return;
  const auto missed = static_cast<std::uint16_t>((header_.address & 0xFFFF) - numbers_[header_.process]);
  if (missed >= 0x8000) {  // doubled, or out of order
    differs_ = true;
    return;
  }
  skipped_ += missed;
  numbers_[header_.process] = static_cast<std::uint16_t>(header_.address + 1);
}

void Sink::take_footer(const Word& word, std::uint64_t cycle, const Window& window) {
  const bool whole = place_ == payload_words(header_.bytes) + 1;
  if (header_.process < shape_.nodes()) ++from_[header_.process];
  if (window.has(cycle)) {
    last_end_ = cycle;
    row_packets_ += first_end_ != 0 ? 1 : 0;
    if (first_end_ == 0) first_end_ = cycle;
  }
  if (whole && is_flagged(word)) {
    ++flagged_;
    return;
  }
  if (!whole || differs_ || word != crc_.footer()) {
    ++wrong_;
    return;
  }
  ++good_;
  hops_ += header_.hops;
  constexpr std::uint64_t kMask = (std::uint64_t{1} << kBirthBits) - 1;
  const std::uint64_t age = (cycle - (header_.address >> kNumberBits)) & kMask;
  if (window.has(cycle - age)) latencies_.add(age);
}

}  // namespace nanet::torus
