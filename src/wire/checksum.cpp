// SPDX-License-Identifier: Apache-2.0
#include "nanet/wire/checksum.hpp"

#include <algorithm>

// Highway compiles this file once for each vector unit; the path is found from the folder of public headers.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "wire/checksum.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace nanet::wire::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

#if HWY_TARGET == HWY_SCALAR

std::uint32_t add_all(FletcherSums sums, const std::byte* data, std::size_t byte_count) {
  constexpr std::size_t kBlockBytes = std::size_t{1} << 20;
  for (; byte_count > kBlockBytes; data += kBlockBytes, byte_count -= kBlockBytes) {
    sums.add(data, kBlockBytes);
    sums.first %= 65535u;
    sums.second %= 65535u;
  }
  sums.add(data, byte_count);
  return sums.value();
}

#else

// A lane holds two words, low and high. Adding whole lanes modulo 2^32 (all) and their high words apart (high) keeps both:
// the low words' sum is all - 65536 high, exact because it is below 2^32 for up to 256 vectors and a tail. The sum of the partial
// sums gives the weight of a vector, so no multiplication is needed inside the loop.
constexpr std::size_t kVectorsPerBlock = 256;

template <class D>
struct LaneSums {
  hn::Vec<D> low;
  hn::Vec<D> high;
};

template <class D, class V>
HWY_INLINE LaneSums<D> split(D d, V all, V high) {
  // Folding 32 bits to 17 keeps the value modulo 65535, because 65536 is 1 there.
  const auto mask = hn::Set(d, 0xFFFFu);
  const auto fold = [&](V v) HWY_ATTR { return hn::Add(hn::And(v, mask), hn::ShiftRight<16>(v)); };
  return {fold(hn::Sub(all, hn::ShiftLeft<16>(high))), fold(high)};
}

// Takes `vectors` (1 .. 256) whole vectors and the tail_words after them, fewer than a vector.
HWY_INLINE void add_vectors(FletcherSums& sums, const std::byte* data, std::size_t vectors, std::size_t tail_words) {
  const hn::ScalableTag<std::uint32_t> d;
  const hn::Repartition<std::uint16_t, decltype(d)> d16;
  const hn::Repartition<std::uint8_t, decltype(d)> d8;
  using V = hn::Vec<decltype(d)>;
  const std::size_t vector_words = 2 * hn::Lanes(d);
  V all = hn::Zero(d);
  V high = hn::Zero(d);
  V all_before = hn::Zero(d);  // sum of `all` as it was before each vector
  V high_before = hn::Zero(d);
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(data);
  const auto load = [&](std::size_t word) HWY_ATTR { return hn::BitCast(d, hn::LoadU(d8, bytes + 2 * word)); };
  for (std::size_t i = 0; i < vectors; ++i) {
    const V words = load(i * vector_words);
    all_before = hn::Add(all_before, all);
    high_before = hn::Add(high_before, high);
    all = hn::Add(all, words);
    high = hn::Add(high, hn::ShiftRight<16>(words));
  }
  const auto before = split(d, all_before, high_before);
  const auto whole = split(d, all, high);
  // Each whole vector's words weigh one more for each tail word after them.
  V behind = hn::Mul(hn::Add(whole.low, whole.high), hn::Set(d, static_cast<std::uint32_t>(tail_words)));
  if (tail_words != 0) {
    // The last vector of the data, less what is counted already: words at its end weigh as in any last vector.
    const auto counted = hn::Set(d16, static_cast<std::uint16_t>(vector_words - tail_words));
    const auto last = hn::BitCast(d16, load((vectors - 1) * vector_words + tail_words));
    const V words = hn::BitCast(d, hn::IfThenZeroElse(hn::Lt(hn::Iota(d16, 0), counted), last));
    all = hn::Add(all, words);
    high = hn::Add(high, hn::ShiftRight<16>(words));
  }
  const auto sum = split(d, all, high);
  // Word j of a vector weighs (vector words - j), plus the vector words of each whole vector after it.
  const auto low_weight = hn::Sub(hn::Set(d, static_cast<std::uint32_t>(vector_words)), hn::ShiftLeft<1>(hn::Iota(d, 0)));
  const auto high_weight = hn::Sub(low_weight, hn::Set(d, 1u));
  behind = hn::Add(behind, hn::Mul(hn::Add(before.low, before.high), hn::Set(d, static_cast<std::uint32_t>(vector_words))));
  const auto inside = hn::Add(hn::Mul(sum.low, low_weight), hn::Mul(sum.high, high_weight));
  const std::uint64_t first = hn::GetLane(hn::SumOfLanes(d, hn::Add(sum.low, sum.high)));
  const std::uint64_t second = hn::GetLane(hn::SumOfLanes(d, hn::Add(behind, inside)));
  sums.second += second + (vector_words * vectors + tail_words) * sums.first;
  sums.first += first;
}

std::uint32_t add_all(FletcherSums sums, const std::byte* data, std::size_t byte_count) {
  const std::size_t vector_bytes = 4 * hn::Lanes(hn::ScalableTag<std::uint32_t>());
  while (byte_count >= vector_bytes) {
    const std::size_t vectors = std::min(byte_count / vector_bytes, kVectorsPerBlock);
    std::size_t taken = vectors * vector_bytes;
    const std::size_t tail_words = byte_count - taken < vector_bytes ? (byte_count - taken) / 2 : 0;
    add_vectors(sums, data, vectors, tail_words);
    sums.first %= 65535u;
    sums.second %= 65535u;
    taken += 2 * tail_words;
    data += taken;
    byte_count -= taken;
  }
  sums.add(data, byte_count);  // one byte, or less than a vector in all
  return sums.value();
}

#endif  // HWY_SCALAR
}  // namespace nanet::wire::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace nanet::wire {

HWY_EXPORT(add_all);

std::uint32_t fletcher32(std::span<const std::byte> bytes) {
  return HWY_DYNAMIC_DISPATCH(add_all)(FletcherSums{}, bytes.data(), bytes.size());
}

std::uint32_t fletcher32_around(std::span<const std::byte> bytes, std::size_t at) {
  FletcherSums head;
  head.add(bytes.data(), at);
  const std::span<const std::byte> body = bytes.subspan(at + kChecksumBytes);
  return HWY_DYNAMIC_DISPATCH(add_all)(head, body.data(), body.size());
}

std::uint32_t mgp_checksum(std::span<const std::byte> payload) { return fletcher32_around(payload, kChecksumOffset); }

}  // namespace nanet::wire
#endif  // HWY_ONCE
