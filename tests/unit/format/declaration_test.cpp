// SPDX-License-Identifier: Apache-2.0
// What cannot be decoded is refused before anything runs, with the key to look at and the reason.
#include "nanet/format/declaration.hpp"

#include <gtest/gtest.h>

#include <functional>

#include "declarations.hpp"
#include "nanet/config/describe.hpp"
#include "nanet/setup_error.hpp"

namespace nanet::format::test {
namespace {

void expect_refused(Declaration declaration, const std::function<void(Declaration&)>& change, const std::string& key,
                    const std::string& text) {
  ASSERT_FALSE(declaration.check().has_value()) << declaration.check()->problem;
  change(declaration);
  const auto problem = declaration.check();
  ASSERT_TRUE(problem.has_value()) << text;
  EXPECT_EQ(problem->key, key);
  EXPECT_NE((problem->problem + " (" + problem->why + ") " + problem->suggestion).find(text), std::string::npos)
      << problem->problem << " (" << problem->why << ") " << problem->suggestion;
  EXPECT_FALSE(problem->why.empty() || problem->suggestion.empty());
  EXPECT_THROW(Decoder{declaration}, SetupError);
}

TEST(Declaration, FieldsThatContradictEachOther) {
  expect_refused(
      ejfat(), [](Declaration& d) { d.header.push_back(equal(field("again", "0", kU8), "0x20")); }, "header.6.equals", "contradict");
  expect_refused(
      ejfat(), [](Declaration& d) { d.header.push_back(field("half", "6", kU32)); }, "header.6.at", "overlap");
  expect_refused(
      ejfat(), [](Declaration& d) { d.header.push_back(field("event", "12", kU64)); }, "header.6.name", "two fields 'event'");
  expect_refused(
      ejfat(), [](Declaration& d) { d.header.push_back(field("beyond", "18", kU32)); }, "header.6.at", "overlap");
  expect_refused(
      ejfat(), [](Declaration& d) { d.header_bytes = "19"; }, "header.5.at", "ends at byte 20");
}

TEST(Declaration, PartsOfAWordMayShareItsBits) {
  Declaration made = ejfat();
  made.header.push_back(field("event_low", "16", kU32));
  made.header.push_back(equal(bits(field("high_nibble", "0", kU8), 7, 4), "1"));
  EXPECT_FALSE(made.check().has_value());
}

TEST(Declaration, PlacesAndBits) {
  expect_refused(
      ejfat(), [](Declaration& d) { d.header[2].at = "-1"; }, "header.2.at", "at byte -1");
  expect_refused(
      ejfat(), [](Declaration& d) { d.header[2].at = "2 +"; }, "header.2.at", "missing at its end");
  expect_refused(
      ejfat(), [](Declaration& d) { d.header[2].at = ""; }, "header.2", "no place");
  expect_refused(
      ejfat(), [](Declaration& d) { d.header[2].item = "4"; }, "header.2.item", "no items");
  expect_refused(
      ejfat(),
      [](Declaration& d) {
        d.header[2].bits = {16, 0};
      },
      "header.2.bits", "none of a word of 16");
  expect_refused(
      ejfat(),
      [](Declaration& d) {
        d.header[2].bits = {0, 4};
      },
      "header.2.bits", "the higher one first");
  expect_refused(
      ejfat(), [](Declaration& d) { d.header[0].equals = "256"; }, "header.0.equals", "cannot equal 256");
  expect_refused(
      ejfat(), [](Declaration& d) { d.header[0].equals = "two"; }, "header.0.equals", "no constant");
  expect_refused(
      ejfat(), [](Declaration& d) { d.header[4].below = "0"; }, "header.4.below", "can have no value");
  expect_refused(
      ejfat(), [](Declaration& d) { d.header[4].least = "0x100000000"; }, "header.4.least", "can have no value");
  expect_refused(
      ejfat(), [](Declaration& d) { d.header[2].name = "data-id"; }, "header.2.name", "no name of a field");
}

TEST(Declaration, Expressions) {
  expect_refused(
      ejfat(), [](Declaration& d) { d.place = "ofset"; }, "place", "did you mean 'offset'?");
  expect_refused(
      ejfat(), [](Declaration& d) { d.place = "0 - offset - 1"; }, "place", "always negative");
  expect_refused(
      ejfat(), [](Declaration& d) { d.place = "offset * length * event"; }, "place", "more than two fields");
  expect_refused(
      ejfat(), [](Declaration& d) { d.place = "offset / 2"; }, "place", "'/ 2' cannot follow");
  expect_refused(
      ejfat(), [](Declaration& d) { d.place = "(offset"; }, "place", "')' is missing");
  expect_refused(
      ejfat(), [](Declaration& d) { d.place = "9223372036854775807 * 2"; }, "place", "63 bits");
  expect_refused(
      ejfat(), [](Declaration& d) { d.place = "12ab"; }, "place", "'12ab' is no number");
  expect_refused(
      ejfat(), [](Declaration& d) { d.place = "offset + length + event + data_id + zero"; }, "place", "four terms");
  expect_refused(
      ejfat(), [](Declaration& d) { d.place = std::string(50, '('); }, "place", "nested too deeply");
}

TEST(Declaration, PlacesThatDependOnThemselves) {
  const auto circle = [](Declaration& d) {
    d.header.push_back(field("a", "20 + b", kU8));
    d.header.push_back(field("b", "20 + a", kU8));
  };
  expect_refused(ejfat(), circle, "header.6.at", "depends on itself");
  expect_refused(
      ejfat(), [](Declaration& d) { d.header.push_back(field("a", "20 + a", kU8)); }, "header.6.at", "depends on itself");
}

TEST(Declaration, UnitsHaveAnEndAndABound) {
  expect_refused(
      ejfat(), [](Declaration& d) { d.unit_bytes_most = 0; }, "unit_bytes_most", "4.29497e+09");
  expect_refused(
      ejfat(), [](Declaration& d) { d.unit_bytes = ""; }, "unit", "nothing says when a unit is complete");
  expect_refused(
      ejfat(), [](Declaration& d) { d.unit = {}; }, "place", "there are no units");
  expect_refused(
      jungfrau(), [](Declaration& d) { d.unit_packets = "9223372036854775807"; }, "unit_bytes_most", "9.22337e+18 bytes");
  expect_refused(
      ejfat(), [](Declaration& d) { d.packet_index = "offset"; }, "packet_index", "both said");
  expect_refused(
      ejfat(),
      [](Declaration& d) {
        d.unit = {"event", "data_id"};
      },
      "unit", "80 bits");
  expect_refused(
      ejfat(), [](Declaration& d) { d.stream = {"nobody"}; }, "stream.0", "no field 'nobody'");
  expect_refused(
      ejfat(), [](Declaration& d) { d.header_bytes = ""; }, "header_bytes", "is missing");
}

TEST(Declaration, VariantsItemsAndWhatStandsInFront) {
  expect_refused(
      gvsp(),
      [](Declaration& d) {
        d.variants[2].when = {{"packet", "1"}};
      },
      "variants.2.when.packet", "cannot depend");
  expect_refused(
      gvsp(), [](Declaration& d) { d.variants[2].when["content"] = "128"; }, "variants.2.when.content", "is never 128");
  expect_refused(
      gvsp(), [](Declaration& d) { d.variants[1].header[0].at = "x"; }, "variants.1.header.0.at", "no field 'x'");
  expect_refused(
      spead(), [](Declaration& d) { d.items->count = "feng"; }, "items.count", "found only after them");
  expect_refused(
      spead(),
      [](Declaration& d) {
        d.items->id_bits = {63, 48};
      },
      "items.id_bits", "overlap");
  expect_refused(
      spead(), [](Declaration& d) { d.items.reset(); }, "header.2.item", "no items");
  expect_refused(
      ejfat(), [](Declaration& d) { d.optional_before->header[0].equals = ""; }, "optional_before.header", "nothing says");
  expect_refused(
      ejfat(), [](Declaration& d) { d.optional_before->bytes = 1; }, "optional_before.bytes", "end at byte 2");
}

TEST(Declaration, NothingElseLiesOnTheChecksum) {
  const auto refused = [](const std::function<void(Declaration&)>& change, const std::string& text) {
    expect_refused(summed(ByteOrder::big), change, "checksum.at", text);
  };
  refused([](Declaration& d) { d.header.push_back(equal(field("magic", "4", kU32), "7")); }, "the checksum and 'magic' overlap");
  refused([](Declaration& d) { d.header.push_back(equal(bits(field("version", "7", kU8), 7, 4), "2")); }, "bytes 4 to 7 are a sum");
  refused([](Declaration& d) { d.header.push_back(below(field("sum", "4", kU32), "9")); }, "which can be any number");
  refused([](Declaration& d) { d.header[0].type = kU64; }, "the checksum and 'number' overlap");
  refused([](Declaration& d) { d.checksum->at = 2; }, "the checksum and 'number' overlap");
  refused(
      [](Declaration& d) {
        d.variants = {{}, {}};
        d.variants[1].header = {equal(field("late", "6", kU16), "0")};
      },
      "the checksum and 'late' overlap");
  refused([](Declaration& d) { d.checksum->at = 8; }, "lies in the payload (that begins at byte 8)");
  refused([](Declaration& d) { d.header_bytes = "6"; }, "lies in the payload");
  refused(
      [](Declaration& d) {
        d.payload.bytes = "4 + number";
        d.checksum->at = 14;
      },
      "lies in the payload");
  refused([](Declaration& d) { d.items = ItemsConfig{.at = 6, .count = "1"}; }, "lies among the items (they begin at byte 6)");
}

TEST(Declaration, FieldsMayNameTheChecksumButNotUseIt) {
  Declaration made = summed(ByteOrder::big);
  made.header.push_back(field("sum", "4", kU32));
  made.header.push_back(field("second", "4", kU16));
  made.header.push_back(bits(field("part", "6", kU16), 7, 4));
  EXPECT_FALSE(made.check().has_value());
  expect_refused(
      made, [](Declaration& d) { d.stream = {"second"}; }, "stream.0", "'second' is the checksum");
  expect_refused(
      made, [](Declaration& d) { d.sequence = SequenceConfig{.field = "sum"}; }, "sequence.field", "'sum' is the checksum");
  expect_refused(
      made, [](Declaration& d) { d.payload.bytes = "4 * part"; }, "payload.bytes", "'part' is the checksum");
  made.payload.bytes = "8";
  made.checksum->at = 16;  // and it may come after the payload
  EXPECT_FALSE(made.check().has_value());
}

TEST(Declaration, SequenceAndTime) {
  const auto with = [](const char* modulo) {
    return [=](Declaration& d) { d.sequence = SequenceConfig{.field = "data_id", .modulo = modulo}; };
  };
  expect_refused(ejfat(), with("65537"), "sequence.modulo", "has 16 bits");
  expect_refused(ejfat(), with("0"), "sequence.modulo", "has 16 bits");
  expect_refused(
      ejfat(), [](Declaration& d) { d.time = {{.field = "event", .unit = "16 miles"}}; }, "time.0.unit", "no unit of time");
  expect_refused(
      ejfat(),
      [](Declaration& d) {
        d.time = {{.field = "event", .unit = "16 ns"}, {.field = "length", .unit = "3 ns"}};
      },
      "time.0.unit", "no multiple");
  expect_refused(
      ejfat(), [](Declaration& d) { d.merge = MergeConfig{.by = MergeBy::time}; }, "merge.by", "packets have none");
  expect_refused(
      ejfat(), [](Declaration& d) { d.packet_bytes_multiple_of = 6; }, "packet_bytes_multiple_of", "power of two");
}

TEST(Declaration, SamplesFillThePayload) {
  const auto with = [](std::uint32_t bits, std::vector<std::uint32_t> shape, SampleKind kind) {
    return [=](Declaration& d) { d.payload.samples = SamplesConfig{.bits = bits, .kind = kind, .shape = shape}; };
  };
  expect_refused(jungfrau(), with(16, {4, 1023}, SampleKind::unsigned_integer), "payload.samples.shape", "the array has 8184 bytes");
  expect_refused(jungfrau(), with(16, {}, SampleKind::floating_point), "payload.samples.bits",
                 "no floating-point numbers of 16 bits");
  Declaration good = jungfrau();
  with(14, {64, 64}, SampleKind::unsigned_integer)(good);
  EXPECT_TRUE(good.check().has_value());
  with(16, {4, 1024}, SampleKind::unsigned_integer)(good);
  EXPECT_FALSE(good.check().has_value());
  EXPECT_EQ(Decoder(good).samples(0)->shape, (std::vector<std::uint32_t>{4, 1024}));
}

// The words of the language are the keys of the components: each says what it is for.
TEST(Declaration, EveryWordIsExplained) {
  const config::Value described = config::describe<Declaration>();
  const auto& keys = *described.find("keys")->as<config::Value::List>();
  EXPECT_GT(keys.size(), 25u);
  for (const config::Value& key : keys) EXPECT_FALSE(key.find("help")->as<std::string>()->empty());
}

}  // namespace
}  // namespace nanet::format::test
