// SPDX-License-Identifier: Apache-2.0
// What a declaration of a packet format can say: docs/declared-formats.md has an example for each word.
//
// Terms
//   field        a number in the header: where it lies, how it is written, and what it must be.
//   expression   + - * of fields and constants, of at most the second degree: "packet * 8192". A whole number is one too.
//   unit         what a detector means by one thing and cuts into packets: a frame, a heap, an event.
//   stream       a sender with numbers of its own. place: where a packet's payload lies in its unit, in bytes.
//
// Whether a declaration can be decoded is asked with check(), which compiles it (decoder.hpp).
// Control path: allocates. Thread rules: none of its own.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "nanet/config/setting.hpp"

namespace nanet::format {

enum class ByteOrder : std::uint8_t { big, little };
constexpr auto choices(ByteOrder) {
  return std::array{config::Choice{"big", ByteOrder::big}, config::Choice{"little", ByteOrder::little}};
}

// The value is the number of bytes.
enum class WordType : std::uint8_t { u8 = 1, u16 = 2, u32 = 4, u64 = 8 };
constexpr auto choices(WordType) {
  return std::array{config::Choice{"u8", WordType::u8}, config::Choice{"u16", WordType::u16}, config::Choice{"u32", WordType::u32},
                    config::Choice{"u64", WordType::u64}};
}

enum class BitOrder : std::uint8_t { lsb_first, msb_first };
constexpr auto choices(BitOrder) {
  return std::array{config::Choice{"lsb_first", BitOrder::lsb_first}, config::Choice{"msb_first", BitOrder::msb_first}};
}

enum class SampleKind : std::uint8_t { unsigned_integer, signed_integer, offset_binary, floating_point };
constexpr auto choices(SampleKind) {
  return std::array{config::Choice{"unsigned", SampleKind::unsigned_integer}, config::Choice{"signed", SampleKind::signed_integer},
                    config::Choice{"offset_binary", SampleKind::offset_binary}, config::Choice{"float", SampleKind::floating_point}};
}

enum class MergeBy : std::uint8_t { unit, time };
constexpr auto choices(MergeBy) { return std::array{config::Choice{"unit", MergeBy::unit}, config::Choice{"time", MergeBy::time}}; }

enum class ChecksumKind : std::uint8_t { fletcher32 };
constexpr auto choices(ChecksumKind) { return std::array{config::Choice{"fletcher32", ChecksumKind::fletcher32}}; }

using Conditions = std::map<std::string, std::string>;  // field: the constant that it has

struct FieldConfig {
  static constexpr config::Component component{"FormatField", "A number in the header of a packet, or in one of its tagged items."};

  std::string name;
  std::string at;
  WordType type = WordType::u8;
  std::optional<std::array<std::uint32_t, 2>> bits;
  std::optional<ByteOrder> byte_order;
  std::string item;
  std::string otherwise;
  std::string equals;
  std::string mask;
  std::string least;
  std::string below;

  template <class Visit>
  void visit(Visit&& v) {
    v("name", name, {.help = "Its name in expressions, such as event_number", .form = "Name", .required = true});
    v("at", at,
      {.help = "Where it begins, from the start of the header; an expression", .unit = "bytes", .form = "Expression", .nullable = true});
    v("type", type, {.help = "The word that it is, or lies in"});
    v("bits", bits, {.help = "[highest, lowest] of the bits of that word that it has, counted from 0, the lowest; null: all"});
    v("byte_order", byte_order, {.help = "Of this word; null: that of the format"});
    v("item", item,
      {.help = "It is the value of the tagged item with this number, and has no place of its own",
       .form = "Expression",
       .nullable = true});
    v("otherwise", otherwise,
      {.help = "Its value where a packet has no such item; null: the packet is refused", .form = "Expression", .nullable = true});
    v("equals", equals, {.help = "It must be this, else the packet is refused", .form = "Expression", .nullable = true});
    v("mask", mask,
      {.help = "Only these of its bits are looked at, and stay where they are", .form = "Expression", .nullable = true});
    v("least", least, {.help = "It must be at least this, else the packet is refused", .form = "Expression", .nullable = true});
    v("below", below, {.help = "It must be below this, else the packet is refused", .form = "Expression", .nullable = true});
  }
};

struct ItemsConfig {
  static constexpr config::Component component{"FormatItems",
                                               "A list of words, each with a number that says what its value is, in any order."};

  std::uint32_t at = 0;
  std::string count;
  WordType type = WordType::u64;
  std::uint32_t immediate_bit = 63;
  std::array<std::uint32_t, 2> id_bits{62, 48};
  std::array<std::uint32_t, 2> value_bits{47, 0};

  template <class Visit>
  void visit(Visit&& v) {
    v("at", at, {.help = "Where the list begins", .unit = "bytes", .least = 0, .most = 1024, .required = true});
    v("count", count, {.help = "How many items there are; an expression", .form = "Expression", .required = true});
    v("type", type, {.help = "The word that an item is"});
    v("immediate_bit", immediate_bit,
      {.help = "The bit that is set where the value stands in the item itself", .least = 0, .most = 63});
    v("id_bits", id_bits, {.help = "[highest, lowest] bit of the item's number", .least = 0, .most = 63});
    v("value_bits", value_bits, {.help = "[highest, lowest] bit of the value", .least = 0, .most = 63});
  }
};

struct SamplesConfig {
  static constexpr config::Component component{"FormatSamples", "The payload as an array of numbers."};

  std::uint32_t bits = 16;
  SampleKind kind = SampleKind::unsigned_integer;
  BitOrder order = BitOrder::lsb_first;
  std::optional<ByteOrder> byte_order;
  std::vector<std::uint32_t> shape;

  template <class Visit>
  void visit(Visit&& v) {
    v("bits", bits,
      {.help = "Width of a number; numbers follow each other without gaps", .unit = "bits", .least = 1, .most = 64, .required = true});
    v("kind", kind, {.help = "How a number is written; offset_binary: the lowest value is 0"});
    v("order", order, {.help = "lsb_first: the first number is in the lowest bits of the first byte"});
    v("byte_order", byte_order, {.help = "Of numbers of whole bytes; null: that of the format"});
    v("shape", shape,
      {.help = "Lengths of the array's dimensions, the last one runs fastest; none: one dimension, as long as the payload",
       .least = 1,
       .most = 1 << 26,
       .length_most = 8});
  }
};

struct PayloadConfig {
  static constexpr config::Component component{"FormatPayload", "What follows the header."};

  std::string bytes;
  std::optional<SamplesConfig> samples;

  template <class Visit>
  void visit(Visit&& v) {
    v("bytes", bytes,
      {.help = "Its length, an expression; what comes after it is left alone; null: to the end of the packet",
       .unit = "bytes",
       .form = "Expression",
       .nullable = true});
    v("samples", samples, {.help = "The numbers in it; null: bytes"});
  }
};

struct SequenceConfig {
  static constexpr config::Component component{"FormatSequence",
                                               "The number by which packets of a stream that are lost are found."};

  std::string field;
  std::string modulo;
  std::uint32_t step = 1;

  template <class Visit>
  void visit(Visit&& v) {
    v("field", field, {.help = "The field that has it", .form = "Name", .required = true});
    v("modulo", modulo,
      {.help = "It begins again at 0 after this many; null: when its bits are used up", .form = "Expression", .nullable = true});
    v("step", step, {.help = "How much it grows from one packet to the next", .least = 1, .most = 0x1p31});
  }
};

struct TimePartConfig {
  static constexpr config::Component component{"FormatTimePart", "A part of a packet's time: a field that counts something."};

  std::string field;
  std::string unit;

  template <class Visit>
  void visit(Visit&& v) {
    v("field", field, {.help = "The field that counts", .form = "Name", .required = true});
    v("unit", unit,
      {.help = "What it counts, such as 16 ns, 1 s or 62.5 ps",
       .pattern = R"(^[0-9]+(\.[0-9]+)? (s|ms|us|ns|ps|fs)$)",
       .required = true});
  }
};

struct MergeConfig {
  static constexpr config::Component component{"FormatMerge", "How units of several streams are put together."};

  MergeBy by = MergeBy::unit;
  std::uint32_t step = 1;

  template <class Visit>
  void visit(Visit&& v) {
    v("by", by, {.help = "What is the same in all streams"});
    v("step", step, {.help = "How much that grows from one to the next", .least = 1, .most = 0x1p31});
  }
};

struct ChecksumConfig {
  static constexpr config::Component component{
      "FormatChecksum", "A sum over the whole packet without the sum itself, and without an optional header in front."};

  ChecksumKind kind = ChecksumKind::fletcher32;
  std::uint32_t at = 0;

  template <class Visit>
  void visit(Visit&& v) {
    v("kind",
      kind, {.help = "Which one; fletcher32: over words of 16 bits in the format's byte order, an odd last byte with a 0 after it, modulo 65535"});
    v("at", at,
      {.help = "Where it stands, four bytes in the format's byte order; even",
       .unit = "bytes",
       .least = 0,
       .most = 1024,
       .multiple_of = 2,
       .required = true});
  }
};

struct HitsConfig {
  static constexpr config::Component component{"FormatHits",
                                               "The hits of an event: numbers of up to 16 bits, one after the other."};

  std::uint32_t at = 0;
  std::string count;
  std::uint32_t bits = 16;
  BitOrder order = BitOrder::lsb_first;
  std::string plus;

  template <class Visit>
  void visit(Visit&& v) {
    v("at", at,
      {.help = "Where they begin, from the start of the event", .unit = "bytes", .least = 0, .most = 1024, .required = true});
    v("count", count, {.help = "The field of the event that says how many there are", .form = "Name", .required = true});
    v("bits", bits, {.help = "Width of a hit", .unit = "bits", .least = 1, .most = 16});
    v("order", order,
      {.help = "lsb_first: the first hit is in the lowest bits of the first byte; of 16 bits, that is little-endian"});
    v("plus", plus,
      {.help = "Added to every hit, an expression of fields of the packet's header; null: nothing",
       .form = "Expression",
       .nullable = true});
  }
};

struct EventsConfig {
  static constexpr config::Component component{"FormatEvents", "A list of events in the payload, each with a header and hits."};

  std::string count;
  std::uint32_t count_most = 65535;
  std::uint32_t event_bytes = 0;
  std::uint32_t header_bytes = 0;
  std::vector<FieldConfig> header;
  std::string timestamp;
  std::string fine_time;
  std::string number;
  std::optional<HitsConfig> hits;

  template <class Visit>
  void visit(Visit&& v) {
    v("count", count, {.help = "The field of the packet that says how many events there are", .form = "Name", .required = true});
    v("count_most", count_most, {.help = "A packet with more events is refused", .unit = "events", .least = 1, .most = 65535});
    v("event_bytes", event_bytes,
      {.help = "From one event to the next; null: the next begins in the byte after the hits",
       .unit = "bytes",
       .least = 1,
       .most = 65535,
       .nullable = true});
    v("header_bytes", header_bytes,
      {.help = "Length of the header of an event", .unit = "bytes", .least = 1, .most = 1024, .required = true});
    v("header", header,
      {.help = "The fields of an event; places are from its start", .length_least = 1, .length_most = 32, .required = true});
    v("timestamp", timestamp, {.help = "The field with the event's time, in the detector's unit", .form = "Name", .required = true});
    v("fine_time", fine_time, {.help = "The field with 1/256 of that unit, 8 bits; null: 0", .form = "Name", .nullable = true});
    v("number", number,
      {.help = "The field with the running number of the event in its stream, modulo 65536; null: lost events are not counted",
       .form = "Name",
       .nullable = true});
    v("hits", hits, {.help = "The hits of an event; null: it has none"});
  }
};

// What the packets of one variant have, and those of a format without variants.
struct BodyConfig {
  std::vector<FieldConfig> header;
  std::string header_bytes;
  PayloadConfig payload;
  std::string packet_bytes;
  std::string place;
  std::string packet_index;
  std::string unit_bytes;
  std::string unit_packets;
  std::string next_event;
  std::optional<EventsConfig> events;

  template <class Visit>
  void visit_body(Visit&& v) {
    v("header", header, {.help = "The fields of the header", .length_most = 64});
    v("header_bytes", header_bytes,
      {.help = "Length of the header, an expression: the payload begins there", .unit = "bytes", .form = "Expression", .nullable = true});
    v("payload", payload, {.help = "What follows the header"});
    v("packet_bytes", packet_bytes,
      {.help = "Length of the whole packet, an expression: a packet of another length is refused; null: any",
       .unit = "bytes",
       .form = "Expression",
       .nullable = true});
    v("place", place,
      {.help = "Where the payload lies in its unit, an expression", .unit = "bytes", .form = "Expression", .nullable = true});
    v("packet_index", packet_index,
      {.help = "In place of `place`: which packet of its unit it is, from 0, an expression; all but the last have the same payload",
       .form = "Expression",
       .nullable = true});
    v("unit_bytes", unit_bytes,
      {.help = "Length of the unit, an expression", .unit = "bytes", .form = "Expression", .nullable = true});
    v("unit_packets", unit_packets,
      {.help = "How many packets with payload the unit has, an expression", .unit = "packets", .form = "Expression", .nullable = true});
    v("next_event", next_event,
      {.help = "On a packet of start_when or stop_when that has no event: the field with the running number of the stream's next "
               "event",
       .form = "Name",
       .nullable = true});
    v("events", events, {.help = "The payload is a list of events, which the engine can read; null: it is not"});
  }
};

struct VariantConfig : BodyConfig {
  static constexpr config::Component component{
      "FormatVariant", "Packets of a format that look different; what a variant does not say is as the format says it."};

  Conditions when;

  template <class Visit>
  void visit(Visit&& v) {
    v("when", when,
      {.help = "The variant of packets whose fields have these values; the first that fits is taken; none: all others",
       .form = "Expression"});
    visit_body(v);
  }
};

struct BeforeConfig {
  static constexpr config::Component component{"FormatBefore",
                                               "A header in front of all others that may be missing, such as a load balancer's."};

  std::uint32_t bytes = 0;
  std::vector<FieldConfig> header;

  template <class Visit>
  void visit(Visit&& v) {
    v("bytes", bytes, {.help = "Its length", .unit = "bytes", .least = 1, .most = 1024, .required = true});
    v("header", header,
      {.help = "Its fields; it is there if all of them that must equal something do",
       .length_least = 1,
       .length_most = 16,
       .required = true});
  }
};

struct Declaration : BodyConfig {
  static constexpr config::Component component{"Format", "A packet format, declared."};

  std::string about;
  ByteOrder byte_order = ByteOrder::big;
  std::optional<BeforeConfig> optional_before;
  std::optional<ItemsConfig> items;
  std::vector<VariantConfig> variants;
  std::uint32_t packet_bytes_most = 65507;
  std::uint32_t packet_bytes_multiple_of = 1;
  std::vector<std::string> stream;
  std::vector<std::string> unit;
  std::uint64_t unit_bytes_most = 0;
  std::optional<SequenceConfig> sequence;
  std::vector<TimePartConfig> time;
  Conditions start_when;
  Conditions stop_when;
  Conditions first_when;
  Conditions last_when;
  std::optional<MergeConfig> merge;
  std::uint64_t timeout_us = 0;
  std::optional<ChecksumConfig> checksum;

  template <class Visit>
  void visit(Visit&& v) {
    v("about", about, {.help = "What sends it, and where its definition stands, in a sentence", .length_most = 500});
    v("byte_order", byte_order, {.help = "Of the words of the header", .required = true});
    v("optional_before", optional_before, {.help = "A header in front that may be missing; null: there is none"});
    v("items", items, {.help = "A list of tagged items in the header; null: there is none"});
    visit_body(v);
    v("variants", variants, {.help = "Packets that look different", .length_most = 16});
    v("packet_bytes_most", packet_bytes_most, {.help = "A longer packet is refused", .unit = "bytes", .least = 1, .most = 65507});
    v("packet_bytes_multiple_of", packet_bytes_multiple_of,
      {.help = "A packet of another length is refused", .unit = "bytes", .least = 1, .most = 65507});
    v("stream", stream,
      {.help = "The fields that together name the sender, 64 bits at most; none: all packets are of one stream",
       .length_most = 4,
       .form = "Name"});
    v("unit", unit,
      {.help = "The fields that together name the unit within its stream, the slowest first, 64 bits at most; none: each packet is "
               "a unit",
       .length_most = 4,
       .form = "Name"});
    v("unit_bytes_most", unit_bytes_most,
      {.help = "The longest unit that is accepted; null: as long as the header can say",
       .unit = "bytes",
       .least = 1,
       .most = 1 << 26,
       .nullable = true});
    v("sequence", sequence, {.help = "How lost packets are found; null: by the holes in units"});
    v("time", time,
      {.help = "The time of a packet: the sum of these, the coarsest first, in the unit of the last; none: it has none",
       .length_most = 3});
    v("start_when", start_when, {.help = "A packet whose fields have these values begins its stream", .form = "Expression"});
    v("stop_when", stop_when, {.help = "A packet whose fields have these values ends its stream", .form = "Expression"});
    v("first_when", first_when, {.help = "A packet whose fields have these values is the first of its unit", .form = "Expression"});
    v("last_when", last_when, {.help = "A packet whose fields have these values is the last of its unit", .form = "Expression"});
    v("merge", merge, {.help = "How units of several streams are put together; null: they are not"});
    v("timeout_us", timeout_us,
      {.help = "How long an unfinished unit waits for more; null: as the receiver says",
       .unit = "us",
       .least = 1,
       .most = 60'000'000,
       .nullable = true});
    v("checksum", checksum, {.help = "A sum over the packet; null: there is none"});
  }

  // The first thing that keeps it from being decoded.
  std::optional<config::Problem> check() const;
};

}  // namespace nanet::format
