// SPDX-License-Identifier: Apache-2.0
#include "books.hpp"

#include "link/gateware/nic_counts.hpp"

namespace nanet::bench {
namespace {

namespace rx = link::gateware::rx;

}  // namespace

Books read_books(const link::gateware::NicDriver& driver) {
  Books books;
  for (unsigned k = 0; k < rx::bad; ++k) {  // which counts frames once more
    if (k == rx::parsed) continue;
    const std::uint64_t count = driver.rx_count(k);
    books.all += count;
    if (k == rx::stored) {
      books.stored = count;
    } else if (count != 0) {
      books.drops.emplace_back(rx::kNames[k], count);
    }
  }
  return books;
}

}  // namespace nanet::bench
