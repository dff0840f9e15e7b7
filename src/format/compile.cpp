// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "format/layout.hpp"
#include "format/program.hpp"
#include "nanet/config/read.hpp"

namespace nanet::format {
namespace {

constexpr std::uint64_t kUnitBytesMax = 1u << 26;
constexpr std::uint64_t kHitsMax = 255;  // of an event

unsigned width_of(const LaidField& field) { return 64u - static_cast<unsigned>(std::countl_zero(field.most)); }

// A text that a variant has, or else the format.
Said said(const std::string& of_variant, const std::string& of_format, const std::string& prefix, const char* key) {
  if (!of_variant.empty()) return {of_variant, prefix + key};
  return {of_format, key};
}

// 16 ns -> 16.0; the text has been looked at by its pattern, unless a program wrote it.
double ns_of(const Said& unit) {
  const std::size_t space = unit.text.find(' ');
  const std::string name = space == std::string::npos ? "" : unit.text.substr(space + 1);
  for (const auto& [known, ns] : {std::pair{"s", 1e9}, {"ms", 1e6}, {"us", 1e3}, {"ns", 1.0}, {"ps", 1e-3}, {"fs", 1e-6}}) {
    if (name != known) continue;
    char* end = nullptr;
    const double number = std::strtod(unit.text.c_str(), &end);
    if (end == unit.text.c_str() + space && number > 0) return number * ns;
  }
  refuse(unit.key, "'" + unit.text + "' is no unit of time", "it is a number and s, ms, us, ns, ps or fs", "write it as 16 ns");
}

class BodyCompiler {
 public:
  BodyCompiler(const Declaration& format, const VariantConfig& variant, std::string prefix, const Layout& layout,
               std::uint32_t common_bytes,
               Facts& facts)  // layout: the fields of the format first
      : format_(format), variant_(variant), prefix_(std::move(prefix)), layout_(layout), common_bytes_(common_bytes), facts_(facts) {}

  Body body() {
    set_fields();
    set_lengths();
    set_samples();
    set_roles();
    set_unit();
    set_flags();
    set_events();
    return std::move(body_);
  }

 private:
  Said either(std::string BodyConfig::*text, const char* key) const { return said(variant_.*text, format_.*text, prefix_, key); }

  std::optional<Expression> expression(const Said& text) const {
    if (text.text.empty()) return std::nullopt;
    return layout_.expression(text);
  }

  void set_fields() {
    body_.min_bytes = std::max({layout_.fixed_bytes(), common_bytes_, items_at()});
    const auto& fields = layout_.fields();
    for (std::size_t i = 0; i < fields.size(); ++i) {
      const LaidField& field = fields[i];
      body_.fields.push_back({field.name, field.least, field.most});
      const auto index = static_cast<std::uint8_t>(i);
      if (field.offset) {
        const std::uint32_t room = std::max(field.end() <= common_bytes_ ? common_bytes_ : body_.min_bytes, 8u);
        body_.loads[i] = field.site.at(*field.offset, room);
      } else if (field.is_tagged) {
        body_.tagged.push_back({index, field.site, !field.otherwise, field.item, field.otherwise.value_or(0)});
      }
    }
    order_moving();
    body_.early = {layout_.folded(0, common_bytes_), layout_.limits(0, common_bytes_)};
    body_.late = {layout_.folded(common_bytes_, body_.min_bytes), layout_.limits(common_bytes_, body_.min_bytes)};
    for (const Limit& limit : layout_.limits_of_moving()) body_.late.limits.push_back(limit);
    body_.has_items = format_.items.has_value();
    if (body_.has_items) set_item_count();
  }

  std::uint32_t items_at() const { return format_.items ? format_.items->at : 0; }

  void set_item_count() {
    const Said count{format_.items->count, "items.count"};
    body_.item_count = layout_.expression(count);
    for (std::size_t i = 0; i < body_.item_count.term_count; ++i) {
      for (const std::uint8_t field : {body_.item_count.terms[i].first, body_.item_count.terms[i].second}) {
        if (field == kNoField || layout_.field(field).offset) continue;
        refuse(count.key, "'" + count.text + "' cannot say how many items there are",
               "'" + layout_.field(field).name + "' is found only after them", "use fields with fixed places");
      }
    }
  }

  // Fields whose place depends on other fields come after these.
  void order_moving() {
    std::vector<std::uint8_t> left;
    for (std::size_t i = 0; i < layout_.fields().size(); ++i) {
      if (!layout_.field(i).offset && !layout_.field(i).is_tagged) left.push_back(static_cast<std::uint8_t>(i));
    }
    while (!left.empty()) {
      const auto waits = [&](const std::string& name) {
        return std::any_of(left.begin(), left.end(), [&](std::uint8_t one) { return layout_.field(one).name == name; });
      };
      const auto next = std::find_if(left.begin(), left.end(), [&](std::uint8_t one) {
        for (const NamedTerm& term : layout_.field(one).at.terms) {
          if (std::any_of(term.fields.begin(), term.fields.end(), waits)) return false;
        }
        return true;
      });
      if (next == left.end()) {
        const LaidField& field = layout_.field(left.front());
        refuse(field.key + ".at", "the place of '" + field.name + "' depends on itself",
               "its expression comes round to it through other fields", "give one of them a fixed place");
      }
      const LaidField& field = layout_.field(*next);
      body_.moving.push_back({*next, field.site, layout_.compile(field.at, field.key + ".at")});
      left.erase(next);
    }
  }

 public:
  // What its packets are chosen by.
  Choice choice() const {
    std::map<std::uint32_t, std::uint8_t> mask;
    std::map<std::uint32_t, std::uint8_t> value;
    for (const auto& [name, text] : variant_.when) {
      const std::string key = prefix_ + "when." + name;
      const std::uint8_t index = layout_.index_of({name, key});
      const LaidField& field = layout_.field(index);
      const std::uint64_t constant = possible(field, {text, key});
      if (!field.offset || index >= format_.header.size()) {
        refuse(key, "a variant cannot depend on '" + name + "'", "it has no fixed place in the header of the format as a whole",
               "choose another field");
      }
      for (const auto& [byte, bits] : memory_of(field, field.site.mask)) mask[byte] |= bits;
      for (const auto& [byte, bits] : memory_of(field, constant)) value[byte] |= bits;
    }
    Choice made{};
    made.more = fold(mask, value, common_bytes_);
    if (made.more.empty()) return made;
    made.first = made.more.front();
    made.more.erase(made.more.begin());
    return made;
  }

 private:
  static std::uint64_t possible(const LaidField& field, const Said& text) {
    const std::uint64_t value = constant_of(text);
    if (value < field.least || value > field.most) {
      refuse(text.key, "'" + field.name + "' is never " + text.text, "its bits or bounds do not allow that value",
             "correct one of them");
    }
    return value;
  }

  void set_lengths() {
    const Said header = either(&BodyConfig::header_bytes, "header_bytes");
    if (header.text.empty())
      refuse(prefix_ + "header_bytes", "header_bytes is missing", "the payload begins after the header",
             "say how long the header is");
    body_.header_bytes = layout_.expression(header);
    for (const LaidField& field : layout_.fields()) {
      if (!field.offset || !body_.header_bytes.is_constant() ||
          field.end() <= static_cast<std::uint64_t>(body_.header_bytes.constant))
        continue;
      refuse(field.key + ".at", "field '" + field.name + "' ends at byte " + std::to_string(field.end()),
             "the header has " + header.text + " bytes", "correct its place, or header_bytes");
    }
    if (body_.header_bytes.is_constant()) {
      body_.min_bytes = std::max(body_.min_bytes,
                                 static_cast<std::uint32_t>(std::min<std::int64_t>(body_.header_bytes.constant, 65536)));
      if (body_.min_bytes > format_.packet_bytes_most) {
        refuse(header.key, "no packet can be accepted", "its header alone is longer than packet_bytes_most", "correct one of them");
      }
    }
    body_.payload_bytes = expression(said(variant_.payload.bytes, format_.payload.bytes, prefix_, "payload.bytes"));
    body_.packet_bytes = expression(either(&BodyConfig::packet_bytes, "packet_bytes"));
    check_checksum();
  }

  // A sum after the payload has a fixed place too.
  void check_checksum() const {
    if (!format_.checksum || !body_.header_bytes.is_constant()) return;
    const std::uint32_t at = format_.checksum->at;
    const auto begin = static_cast<std::uint64_t>(body_.header_bytes.constant);
    if (at + wire::kChecksumBytes <= begin) return;
    const Said bytes = said(variant_.payload.bytes, format_.payload.bytes, prefix_, "payload.bytes");
    if (!bytes.text.empty() && at >= static_cast<double>(begin) + layout_.most_of(std::get<Polynomial>(parse_expression(bytes.text))))
      return;
    refuse("checksum.at", "the checksum lies in the payload", "that begins at byte " + std::to_string(begin),
           "correct checksum.at, or header_bytes");
  }

  void set_samples() {
    body_.samples = variant_.payload.samples ? variant_.payload.samples : format_.payload.samples;
    if (!body_.samples) return;
    const std::string key = (variant_.payload.samples ? prefix_ : "") + "payload.samples.";
    const SamplesConfig& samples = *body_.samples;
    if (samples.kind == SampleKind::floating_point && samples.bits != 32 && samples.bits != 64) {
      refuse(key + "bits", "there are no floating-point numbers of " + std::to_string(samples.bits) + " bits", "they have 32 or 64",
             "correct bits or kind");
    }
    if (samples.shape.empty() || !body_.payload_bytes || !body_.payload_bytes->is_constant()) return;
    double bits = samples.bits;
    for (const std::uint32_t length : samples.shape) bits *= length;
    if (bits == 8.0 * static_cast<double>(body_.payload_bytes->constant)) return;
    refuse(key + "shape", "the array has " + config::text_of(bits / 8) + " bytes",
           "the payload has " + std::to_string(body_.payload_bytes->constant), "correct shape, bits or payload.bytes");
  }

  Key key_of(const std::vector<std::string>& names, const char* key) const {
    Key made;
    unsigned bits = 0;
    for (std::size_t i = names.size(); i-- > 0;) {  // the last is the lowest
      const std::uint8_t index = layout_.index_of({names[i], std::string(key) + "." + std::to_string(i)});
      if (bits < 64) made.parts[made.count++] = {index, static_cast<std::uint8_t>(bits)};
      bits += width_of(layout_.field(index));
    }
    if (bits > 64)
      refuse(key, std::string(key) + " has " + std::to_string(bits) + " bits", "64 is the most",
             "leave out a field, or take fewer of its bits");
    return made;
  }

  void set_roles() {
    body_.stream = key_of(format_.stream, "stream");
    for (std::size_t i = 0; i < body_.stream.count; ++i) {
      const Key::Part part = body_.stream.parts[i];
      facts_.stream_bits = std::max(facts_.stream_bits, part.shift + width_of(layout_.field(part.field)));
    }
    if (format_.sequence) set_sequence();
    if (!format_.time.empty()) set_time();
    const Said next = either(&BodyConfig::next_event, "next_event");
    if (!next.text.empty()) body_.next_event = layout_.index_of(next);
  }

  void set_sequence() {
    const SequenceConfig& sequence = *format_.sequence;
    body_.sequence = layout_.index_of({sequence.field, "sequence.field"});
    const unsigned bits = width_of(layout_.field(body_.sequence));
    const std::uint64_t natural = bits < 64 ? std::uint64_t{1} << bits : 0;
    facts_.sequence_modulo = sequence.modulo.empty() ? natural : constant_of({sequence.modulo, "sequence.modulo"});
    facts_.sequence_step = sequence.step;
    if (facts_.sequence_modulo == 1 || (natural != 0 && (facts_.sequence_modulo == 0 || facts_.sequence_modulo > natural))) {
      refuse("sequence.modulo", "'" + sequence.field + "' cannot count modulo " + sequence.modulo,
             "it has " + std::to_string(bits) + " bits", "leave modulo out, or choose 2 to 2^" + std::to_string(bits));
    }
  }

  void set_time() {
    Polynomial sum;
    const double finest_ns = ns_of({format_.time.back().unit, "time." + std::to_string(format_.time.size() - 1) + ".unit"});
    for (std::size_t i = 0; i < format_.time.size(); ++i) {
      const std::string key = "time." + std::to_string(i);
      const double factor = ns_of({format_.time[i].unit, key + ".unit"}) / finest_ns;
      const double whole = std::round(factor);
      if (whole < 1 || whole > 0x1p53 || std::abs(factor - whole) > 1e-9 * whole) {
        refuse(key + ".unit", "'" + format_.time[i].unit + "' is no multiple of '" + format_.time.back().unit + "'",
               "times are counted in the last unit", "put the finest last");
      }
      layout_.index_of({format_.time[i].field, key + ".field"});
      sum.terms.push_back({static_cast<std::int64_t>(whole), {format_.time[i].field}});
    }
    body_.time = layout_.compile(sum, "time");
    facts_.time_unit_ns = finest_ns;
  }

  void set_unit() {
    const Said place = either(&BodyConfig::place, "place");
    const Said index = either(&BodyConfig::packet_index, "packet_index");
    const Said bytes = either(&BodyConfig::unit_bytes, "unit_bytes");
    const Said packets = either(&BodyConfig::unit_packets, "unit_packets");
    if (format_.unit.empty()) {
      for (const Said& one : {place, index, bytes, packets}) {
        if (!one.text.empty()) refuse(one.key, one.key + " is said", "there are no units", "add unit:, the fields that name one");
      }
      return;
    }
    body_.unit = key_of(format_.unit, "unit");
    if (!place.text.empty() && !index.text.empty())
      refuse(index.key, "place and packet_index are both said", "each says where the payload lies", "remove one");
    body_.place = expression(index.text.empty() ? place : index);
    body_.unit_bytes = expression(bytes);
    body_.unit_packets = expression(packets);
    facts_.has_packet_index = facts_.has_packet_index || !index.text.empty();
    facts_.has_place = facts_.has_place || body_.place.has_value();
    if (!body_.unit_bytes && body_.unit_packets && body_.unit_packets->is_constant() && body_.payload_bytes &&
        body_.payload_bytes->is_constant()) {
      std::int64_t all = 0;
      const bool overflow = __builtin_mul_overflow(body_.unit_packets->constant, body_.payload_bytes->constant, &all);
      body_.unit_bytes = Expression{.constant = overflow ? std::numeric_limits<std::int64_t>::max() : all};
    }
    bound_unit(bytes);
  }

  // The longest unit, which whoever puts units together makes room for at set-up.
  void bound_unit(const Said& bytes) {
    double most = static_cast<double>(format_.unit_bytes_most);
    if (most == 0 && body_.unit_bytes) {
      most = body_.unit_bytes->is_constant() ? static_cast<double>(body_.unit_bytes->constant)
                                             : layout_.most_of(std::get<Polynomial>(parse_expression(bytes.text)));
    } else if (most == 0 && !body_.place) {
      most = format_.packet_bytes_most;  // a packet is a unit
    }
    if (most == 0 || most > kUnitBytesMax) {
      refuse("unit_bytes_most", "a unit could have " + (most == 0 ? "any number of" : config::text_of(most)) + " bytes",
             "memory for units is made at the start, 64 MiB at most for one", "add unit_bytes_most: the longest that is sent");
    }
    facts_.unit_bytes_most = std::max(facts_.unit_bytes_most, static_cast<std::uint64_t>(most));
  }

  void set_flags() {
    const std::pair<const Conditions*, std::pair<const char*, std::uint8_t>> all[] = {
        {&format_.start_when, {"start_when", Packet::start}},
        {&format_.stop_when, {"stop_when", Packet::stop}},
        {&format_.first_when, {"first_when", Packet::first}},
        {&format_.last_when, {"last_when", Packet::last}}};
    for (const auto& [conditions, said] : all) {
      if (conditions->empty()) continue;
      Flag flag{.flag = said.second};
      std::map<std::uint32_t, std::uint8_t> mask;
      std::map<std::uint32_t, std::uint8_t> value;
      for (const auto& [name, text] : *conditions) {
        const std::string key = std::string(said.first) + "." + name;
        const std::uint8_t index = layout_.index_of({name, key});
        const LaidField& field = layout_.field(index);
        const std::uint64_t constant = constant_of({text, key});
        if (!field.offset || (constant & ~field.site.mask) != 0) {
          flag.conditions.push_back({index, constant});
          continue;
        }
        for (const auto& [byte, bits] : memory_of(field, field.site.mask)) mask[byte] |= bits;
        for (const auto& [byte, bits] : memory_of(field, constant)) value[byte] |= bits;
      }
      flag.checks = fold(mask, value, body_.min_bytes);
      body_.flags.push_back(std::move(flag));
    }
  }

  void set_events() {
    const bool is_variants = variant_.events.has_value();
    const auto& events = is_variants ? variant_.events : format_.events;
    if (!events) return;
    const std::string key = is_variants ? prefix_ + "events." : "events.";
    if (body_.has_items || !body_.moving.empty())
      refuse(key + "count", "a header with events has fields that move", "events are read without looking for them",
             "give its fields fixed places");
    Layout inner(format_.byte_order);
    inner.add(events->header, key + "header");
    EventsProgram made{.count_most = events->count_most, .header_bytes = events->header_bytes, .stride_bytes = events->event_bytes};
    made.count_field = layout_.index_of({events->count, key + "count"});
    set_event_fields(*events, key, inner, made);
    if (events->hits) set_hits(*events, key, inner, made);
    const std::uint32_t least = std::max(made.header_bytes, made.hits_at);
    if (made.stride_bytes != 0 && made.stride_bytes < least)
      refuse(key + "event_bytes", "an event has fewer bytes than its header", "events would overlap", "correct one of them");
    made.is_one_word = true;
    for (const std::uint8_t one : {made.timestamp, made.fine_time, made.hit_count}) {
      const Load& first = made.loads[made.timestamp];
      if (one != kNoField && (made.loads[one].offset != first.offset || made.loads[one].swap != first.swap))
        made.is_one_word = false;
    }
    set_direct(inner, made);
    body_.events = std::move(made);
    facts_.has_events = true;
  }

  void set_event_fields(const EventsConfig& events, const std::string& key, const Layout& inner, EventsProgram& made) {
    for (std::size_t i = 0; i < inner.fields().size(); ++i) {
      const LaidField& field = inner.field(i);
      if (!field.offset || field.end() > events.header_bytes) {
        refuse(field.key + ".at", "field '" + field.name + "' does not lie in the header of its event",
               "that has " + std::to_string(events.header_bytes) + " bytes", "correct its place, or header_bytes");
      }
      made.loads[i] = field.site.at(*field.offset, std::max(events.header_bytes, 8u));
    }
    made.gate = {inner.folded(0, events.header_bytes), inner.limits(0, events.header_bytes)};
    const auto field = [&](const std::string& name, const char* role, unsigned bits) {
      if (name.empty()) return kNoField;
      const std::uint8_t index = inner.index_of({name, key + role});
      if (width_of(inner.field(index)) > bits) {
        refuse(key + role, "'" + name + "' has more than " + std::to_string(bits) + " bits", "an event has no room for more",
               "take fewer of its bits");
      }
      return index;
    };
    made.timestamp = field(events.timestamp, "timestamp", 32);
    made.fine_time = field(events.fine_time, "fine_time", 8);
    made.number = field(events.number, "number", 16);
  }

  // Where it can be had: numbers of whole bytes, little-endian, and eight bytes of each event after where one begins.
  static void set_direct(const Layout& inner, EventsProgram& made) {
    made.is_direct = made.stride_bytes != 0 && made.gate.checks.empty() && made.gate.limits.size() < 2;
    const auto direct = [&](std::uint8_t index) {
      if (index == kNoField) return Direct{};
      const LaidField& field = inner.field(index);
      const std::uint32_t offset = *field.offset + field.site.low / 8;
      made.is_direct = made.is_direct && !(field.site.big && field.site.bytes > 1) && field.site.low % 8 == 0 &&
                       offset + 8 <= made.stride_bytes;
      if (field.site.mask >> 63 != 0) made.is_direct = false;
      return Direct{offset, field.site.mask};
    };
    made.direct_timestamp = direct(made.timestamp);
    made.direct_fine_time = direct(made.fine_time);
    made.direct_hit_count = direct(made.hit_count);
    made.direct_number = direct(made.number);
    made.is_whole = made.direct_timestamp.mask == 0xFFFFFFFF && made.direct_fine_time.mask == 0xFF &&
                    made.direct_hit_count.mask == 0xFF;
    if (made.gate.limits.empty()) return;
    const Limit& limit = made.gate.limits.front();
    made.direct_bounded = direct(limit.field);
    made.is_bytes = made.is_direct && made.direct_bounded.mask == 0xFF && limit.least == 0;
    made.byte_most = static_cast<std::uint32_t>(limit.most);
  }

  void set_hits(const EventsConfig& events, const std::string& key, const Layout& inner, EventsProgram& made) {
    const HitsConfig& hits = *events.hits;
    made.hit_count = inner.index_of({hits.count, key + "hits.count"});
    made.hits_at = hits.at;
    made.hit_bits = hits.bits;
    made.hits_msb_first = hits.order == BitOrder::msb_first;
    made.hits_in_place = hits.bits == 16 && hits.plus.empty() && !made.hits_msb_first;
    if (!hits.plus.empty()) made.plus = layout_.expression({hits.plus, key + "hits.plus"});
    const std::uint64_t most = inner.field(made.hit_count).most;
    if (hits.at < events.header_bytes)
      refuse(key + "hits.at", "the hits begin in the header of their event",
             "that has " + std::to_string(events.header_bytes) + " bytes", "correct one of them");
    if (most > kHitsMax)
      refuse(key + "hits.count", "an event could have " + std::to_string(most) + " hits", "there is room for 255",
             "add below: 256, or less, to '" + hits.count + "'");
    const std::uint64_t bytes = hits.at + (most * hits.bits + 7) / 8;
    if (made.stride_bytes != 0 && bytes > made.stride_bytes) {
      refuse(key + "hits", std::to_string(most) + " hits do not fit into an event",
             "they end at byte " + std::to_string(bytes) + " of " + std::to_string(made.stride_bytes),
             "add a bound (below) to '" + hits.count + "', or correct event_bytes");
    }
  }

  const Declaration& format_;
  const VariantConfig& variant_;
  const std::string prefix_;
  const Layout& layout_;
  const std::uint32_t common_bytes_;
  Facts& facts_;
  Body body_;
};

void set_items(const ItemsConfig& items, ByteOrder order, ItemList& made) {
  const auto bits = 8u * static_cast<unsigned>(items.type);
  std::uint64_t seen = 0;
  const auto take = [&](const std::array<std::uint32_t, 2>& range, const char* key) {
    if (range[0] < range[1] || range[0] >= bits) {
      refuse(std::string("items.") + key, "the item has no such bits", "its word has " + std::to_string(bits),
             "write [highest, lowest]");
    }
    const std::uint64_t mask = (range[0] - range[1] == 63 ? ~std::uint64_t{0} : (std::uint64_t{1} << (range[0] - range[1] + 1)) - 1)
                               << range[1];
    if ((seen & mask) != 0)
      refuse(std::string("items.") + key, "two parts of an item overlap", "number, value and immediate bit are apart",
             "correct one of them");
    seen |= mask;
    return mask;
  };
  made.at = items.at;
  made.item_bytes = static_cast<std::uint32_t>(items.type);
  made.word = {.bytes = static_cast<std::uint8_t>(items.type),
               .low = 0,
               .big = order == ByteOrder::big,
               .mask = bits == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << bits) - 1};
  made.id_shift = static_cast<std::uint8_t>(items.id_bits[1]);
  made.immediate = take({items.immediate_bit, items.immediate_bit}, "immediate_bit");
  const std::uint64_t ids = take(items.id_bits, "id_bits");
  made.id_mask = ids >> made.id_shift;
  take(items.value_bits, "value_bits");
  const std::uint64_t head = ids | made.immediate;
  made.head_mask = order == ByteOrder::big ? __builtin_bswap64(head) : head;
}

void set_before(const BeforeConfig& before, ByteOrder order, Program& made) {
  Layout layout(order);
  layout.add(before.header, "optional_before.header");
  if (layout.fixed_bytes() > before.bytes) {
    refuse("optional_before.bytes", "its fields end at byte " + std::to_string(layout.fixed_bytes()),
           "it has " + std::to_string(before.bytes) + " bytes", "correct one of them");
  }
  made.before_bytes = before.bytes;
  made.before = layout.folded(0, before.bytes);
  if (made.before.empty())
    refuse("optional_before.header", "nothing says whether that header is there", "none of its fields must equal something",
           "add equals: to one");
}

void set_whole(const Declaration& format, Program& made) {
  if ((format.packet_bytes_multiple_of & (format.packet_bytes_multiple_of - 1)) != 0) {
    refuse("packet_bytes_multiple_of", std::to_string(format.packet_bytes_multiple_of) + " is not a power of two",
           "lengths are compared by their bits", "choose 1, 2, 4, 8, ...");
  }
  made.packet_bytes_most = format.packet_bytes_most;
  made.length_mask = format.packet_bytes_multiple_of - 1;
  if (format.optional_before) set_before(*format.optional_before, format.byte_order, made);
  if (format.items) set_items(*format.items, format.byte_order, made.items);
  made.facts.has_stream = !format.stream.empty();
  made.facts.has_unit = !format.unit.empty();
  made.facts.has_sequence = format.sequence.has_value();
  made.facts.timeout_ns = format.timeout_us * 1000;
  made.facts.merge = format.merge;
  made.facts.samples = format.payload.samples;
  if (format.merge && format.merge->by == MergeBy::time && format.time.empty()) {
    refuse("merge.by", "units cannot be merged by time", "packets have none", "add time:");
  }
  made.has_checksum = format.checksum.has_value();
  if (made.has_checksum) {
    made.checksum_at = format.checksum->at;
    made.checksum_is_big = format.byte_order == ByteOrder::big;
  }
}

// Something has to tell when a unit with places is whole.
void check_completion(const Declaration& format, const Program& made) {
  const auto ends = [](const Body& body) { return body.unit_bytes || body.unit_packets; };
  const auto lies = [](const Body& body) { return body.place.has_value(); };
  if (format.unit.empty() || std::none_of(made.bodies.begin(), made.bodies.end(), lies) || !format.last_when.empty()) return;
  if (std::any_of(made.bodies.begin(), made.bodies.end(), ends)) return;
  refuse("unit", "nothing says when a unit is complete", "its packets have places, and it has no end",
         "add unit_bytes, unit_packets or last_when");
}

Program compiled(const Declaration& format) {
  Program made;
  set_whole(format, made);
  const ItemsConfig* const items = format.items ? &*format.items : nullptr;
  const ChecksumConfig* const checksum = format.checksum ? &*format.checksum : nullptr;
  if (checksum != nullptr && items != nullptr && checksum->at + wire::kChecksumBytes > items->at)
    refuse("checksum.at", "the checksum lies among the items", "they begin at byte " + std::to_string(items->at),
           "correct one of them");
  Layout common(format.byte_order, items, checksum);
  common.add(format.header, "header");
  made.common_bytes = std::max(common.fixed_bytes(), made.has_checksum ? made.checksum_at + 4 : 0);
  const std::vector<VariantConfig> whole(format.variants.empty() ? 1 : 0);
  const auto& variants = format.variants.empty() ? whole : format.variants;
  for (std::size_t i = 0; i < variants.size(); ++i) {
    const std::string prefix = format.variants.empty() ? "" : "variants." + std::to_string(i) + ".";
    Layout layout = common;
    layout.add(variants[i].header, prefix + "header");
    BodyCompiler compiler(format, variants[i], prefix, layout, made.common_bytes, made.facts);
    made.choices.push_back(compiler.choice());
    made.choices.back().body = i;
    made.bodies.push_back(compiler.body());
    made.bodies.back().index = static_cast<std::uint8_t>(i);
  }
  check_completion(format, made);
  set_flat(made);
  return made;
}

}  // namespace

Compiled compile(const Declaration& declaration) {
  try {
    return {std::nullopt, compiled(declaration)};
  } catch (const Broken& broken) {
    return {broken.problem, {}};
  }
}

std::optional<config::Problem> Declaration::check() const { return compile(*this).problem; }

}  // namespace nanet::format
