// SPDX-License-Identifier: Apache-2.0
// Any declaration, and any packet for it. What can be compiled decodes it: nothing is read beyond it, and what is accepted keeps to what decoder.hpp
// promises. Any text as an expression, too.
//
// The first byte: even, the next ones choose what is declared, from words that fit and words that do not, and the rest is the packet; odd, a declaration
// and packets as declaration_tree.hpp says.
#include <string>
#include <vector>

#include "declaration_tree.hpp"
#include "format/event_reader.hpp"
#include "format/expression.hpp"
#include "fuzz_common.hpp"

namespace {

using namespace nanet::format;
using nanet::fuzz::require;

// One choice after the other; 0 when the bytes are used up.
class Choices {
 public:
  explicit Choices(std::span<const std::byte> bytes) : bytes_(bytes) {}
  unsigned next(unsigned count) {
    if (bytes_.empty()) return 0;
    const auto value = static_cast<unsigned>(bytes_.front());
    bytes_ = bytes_.subspan(1);
    return value % count;
  }
  std::span<const std::byte> rest() const { return bytes_; }

 private:
  std::span<const std::byte> bytes_;
};

const char* const kNames[] = {"a", "b", "c", "d", "e"};
const char* const kExpressions[] = {"",       "0",         "8",     "a",  "b - 1",     "a * b",      "8 + 8 * c", "a + b + c",
                                    "a - a",  "2 * (a+1)", "-1",    "d",  "a * b * c", "0xFFFFFFFF", "4 * d - 3", "a +",
                                    "16 + e", "c * 64",    "e * e", "12", "20",        "24",         "1000000",   "nobody"};
const WordType kTypes[] = {WordType::u8, WordType::u16, WordType::u32, WordType::u64};

// What does not fit is rare, so that most declarations can be compiled.
bool rarely(Choices& choices) { return choices.next(32) == 31; }
std::string expression(Choices& choices) { return kExpressions[choices.next(std::size(kExpressions))]; }
std::string fitting(Choices& choices, std::string text) { return rarely(choices) ? expression(choices) : text; }
std::string constant(Choices& choices) { return choices.next(2) == 0 ? "" : std::to_string(choices.next(4)); }

// at: its byte. has_items: it may be a tagged one.
FieldConfig field(Choices& choices, const char* name, unsigned at, bool has_items = false) {
  FieldConfig made;
  made.name = name;
  made.at = fitting(choices, std::to_string(at));
  made.type = kTypes[choices.next(4)];
  if (choices.next(3) == 0) {
    const unsigned low = choices.next(8 * static_cast<unsigned>(made.type));
    made.bits = {low + choices.next(8 * static_cast<unsigned>(made.type) - low), rarely(choices) ? 63 : low};
  }
  if (choices.next(4) == 0) made.byte_order = choices.next(2) == 0 ? ByteOrder::big : ByteOrder::little;
  if (has_items && choices.next(2) == 0) {
    made.item = std::to_string(choices.next(4));
    made.at.clear();
    made.bits.reset();
    made.otherwise = constant(choices);
  }
  if (choices.next(8) == 0) made.equals = constant(choices);
  if (choices.next(8) == 0) made.least = constant(choices);
  if (choices.next(8) == 0) made.below = rarely(choices) ? "0" : "200";
  return made;
}

EventsConfig events(Choices& choices) {
  EventsConfig made;
  made.count = "a";
  made.count_most = 1 + choices.next(32);
  made.event_bytes = choices.next(2) == 0 ? 0 : 255 * 2 + 32 + choices.next(8);
  made.header_bytes = 9 + choices.next(8);
  made.header = {field(choices, "t", 0), field(choices, "h", 8)};
  made.header.back().type = WordType::u8;
  made.header.back().bits.reset();
  made.header.front().type = WordType::u32;
  made.header.front().bits.reset();
  made.timestamp = "t";
  made.fine_time = choices.next(2) == 0 ? "" : "h";
  made.number = choices.next(2) == 0 ? "" : "h";
  if (choices.next(2) == 0) {
    made.hits = HitsConfig{.at = 16 + choices.next(8), .count = "h", .bits = 1 + choices.next(16)};
    made.hits->order = choices.next(2) == 0 ? BitOrder::lsb_first : BitOrder::msb_first;
    made.hits->plus = choices.next(2) == 0 ? "" : "b";
  }
  return made;
}

void fill_body(Choices& choices, BodyConfig& body, const Declaration& whole, std::size_t first, std::size_t count) {
  const bool has_items = whole.items.has_value();
  for (std::size_t i = first; i < first + count; ++i) {
    body.header.push_back(field(choices, kNames[i], static_cast<unsigned>(8 * i), has_items && i > 0));
  }
  if (choices.next(4) == 0) body.header.back().at = body.header.back().item.empty() ? "24 + a" : "";
  body.header_bytes = fitting(choices, choices.next(2) == 0 ? "40" : "40 + b");
  body.payload.bytes = choices.next(2) == 0 ? "" : expression(choices);
  body.packet_bytes = rarely(choices) ? expression(choices) : "";
  if (!whole.unit.empty()) {
    body.place = choices.next(2) == 0 ? "b * 8" : expression(choices);
    body.packet_index = rarely(choices) ? expression(choices) : "";
    body.unit_bytes = choices.next(2) == 0 ? "" : expression(choices);
    body.unit_packets = choices.next(2) == 0 ? "4" : "";
  }
  if (!has_items && choices.next(2) == 0) body.events = events(choices);
}

Declaration declaration(Choices& choices) {
  Declaration made;
  made.byte_order = choices.next(2) == 0 ? ByteOrder::big : ByteOrder::little;
  if (choices.next(2) == 0) made.unit = {"c"};
  if (choices.next(4) == 0) {
    made.items = ItemsConfig{.at = choices.next(32), .count = fitting(choices, "a")};
    if (rarely(choices)) made.items->type = kTypes[choices.next(4)];
  }
  if (choices.next(4) == 0) {
    made.optional_before = BeforeConfig{.bytes = 8 + choices.next(8), .header = {field(choices, "x", 0)}};
    made.optional_before->header.front().equals = "0";
  }
  fill_body(choices, made, made, 0, 3);
  for (unsigned left = choices.next(3); left > 0; --left) {
    VariantConfig variant;
    fill_body(choices, variant, made, 3, 2);
    if (choices.next(2) == 0) variant.when["a"] = std::to_string(choices.next(2));
    made.variants.push_back(variant);
  }
  if (choices.next(2) == 0) made.stream = {"a"};
  if (!made.unit.empty() && !rarely(choices)) made.unit_bytes_most = 1u << choices.next(27);
  if (choices.next(3) == 0) made.sequence = SequenceConfig{.field = "b", .modulo = rarely(choices) ? "1" : ""};
  if (choices.next(3) == 0) made.time = {{.field = "a", .unit = "1 s"}, {.field = "b", .unit = "16 ns"}};
  if (choices.next(2) == 0) made.last_when["a"] = "1";
  if (choices.next(3) == 0) made.checksum = ChecksumConfig{.at = rarely(choices) ? 2 * choices.next(16) : 36};
  return made;
}

void check_packet(const Decoder& decoder, std::span<const std::byte> bytes, const Packet& packet) {
  const Facts& facts = decoder.facts();
  require(std::size_t{packet.payload_offset} + packet.payload_bytes <= bytes.size(), "the payload lies in the packet");
  if (facts.has_unit && !facts.has_packet_index) {
    const std::uint64_t end = packet.unit_bytes != 0 ? packet.unit_bytes : facts.unit_bytes_most;
    require(end <= facts.unit_bytes_most && packet.place + packet.payload_bytes <= end, "it lies in its unit");
  }
  std::uint16_t room[256];
  std::uint32_t count = 0;
  unsigned sum = 0;
  EventReader::for_each_event(
      EventReader(decoder).open(bytes), [&] { return room; },
      [&](const ReadEvent& event) {
        for (std::uint32_t i = 0; i < event.hit_count && facts.has_events; ++i) sum += event.hits[i];
        ++count;
      });
  require(count == packet.event_count, "there are as many events as it says");
  require(sum < ~0u, "hits can be read");
}

void decode(Decoder& decoder, std::span<const std::byte> bytes) {
  Packet packet;
  Packet first_read;
  Decoder first = decoder;  // has read nothing yet, so it takes the long way
  const Refusal refusal = first.decode(bytes, first_read);
  require(decoder.decode(bytes, packet) == refusal && decoder.decode(bytes, packet) == refusal, "what came before changes nothing");
  require(refusal != Refusal::none || packet == first_read, "nor what a packet means");
  if (refusal == Refusal::none) check_packet(decoder, bytes, packet);
  require(decoder.explain(bytes).empty() == (refusal == Refusal::none), "what is refused is explained");
  decoder.fields(bytes);
}

// What a packet begins with, the longer pieces in steps, and the packet.
void decode_pieces(Decoder& decoder, std::span<const std::byte> whole) {
  for (std::size_t bytes = 0; bytes < whole.size(); bytes += 1 + bytes / 8) {
    decode(decoder, nanet::fuzz::Input(whole.first(bytes)).bytes());
  }
  decode(decoder, whole);
}

void of_chosen_words(nanet::fuzz::Bytes& bytes) {
  Choices choices(bytes.rest());
  const Declaration declared = declaration(choices);
  const auto problem = declared.check();
  if (problem) {
    require(!problem->problem.empty() && !problem->why.empty() && !problem->suggestion.empty(), "what is refused is explained");
    return;
  }
  Decoder decoder(declared);
  decode_pieces(decoder, nanet::fuzz::Input(choices.rest()).bytes());
}

void of_a_tree(nanet::fuzz::Bytes& bytes) {
  const auto declared = nanet::fuzz::take_declaration(bytes);
  if (!declared) return;
  Decoder decoder(*declared);  // what was read can be compiled
  decode_pieces(decoder, nanet::fuzz::take_packet(bytes).bytes());
  while (!bytes.empty()) decode(decoder, nanet::fuzz::take_packet(bytes).bytes());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  parse_expression({reinterpret_cast<const char*>(data), std::min<std::size_t>(size, 64)});
  nanet::fuzz::Bytes bytes(data, size);
  if (bytes.take() % 2 == 0) {
    of_chosen_words(bytes);
  } else {
    of_a_tree(bytes);
  }
  return 0;
}
