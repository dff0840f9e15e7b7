// SPDX-License-Identifier: Apache-2.0
// Decoder of declared formats, for the commands that look at packets.
#include <nanobind/stl/string.h>

#include "bindings.hpp"
#include "link/pcap/mapped_file.hpp"
#include "link/pcap/pcap_reader.hpp"
#include "nanet/config/read.hpp"
#include "nanet/format/decoder.hpp"
#include "values.hpp"

namespace nanet::bindings {
namespace {

std::span<const std::byte> bytes_of(const nb::bytes& packet) {
  return {reinterpret_cast<const std::byte*>(packet.c_str()), packet.size()};
}

nb::dict meaning_of(const format::Packet& packet) {
  nb::dict said;
  said["stream"] = packet.stream;
  said["unit"] = packet.unit;
  said["place"] = packet.place;
  said["unit_bytes"] = packet.unit_bytes;
  said["unit_packets"] = packet.unit_packets;
  said["sequence"] = packet.sequence;
  said["time"] = packet.time;
  said["next_event"] = packet.next_event;
  said["payload_offset"] = packet.payload_offset;
  said["payload_bytes"] = packet.payload_bytes;
  said["event_count"] = packet.event_count;
  said["first_event"] = packet.first_event;
  said["variant"] = packet.variant;
  said["before_bytes"] = packet.before_bytes;
  said["start"] = (packet.flags & format::Packet::start) != 0;
  said["stop"] = (packet.flags & format::Packet::stop) != 0;
  said["first"] = (packet.flags & format::Packet::first) != 0;
  said["last"] = (packet.flags & format::Packet::last) != 0;
  return said;
}

nb::dict facts_of(const format::Facts& facts) {
  nb::dict said;
  said["has_stream"] = facts.has_stream;
  said["has_unit"] = facts.has_unit;
  said["has_packet_index"] = facts.has_packet_index;
  said["has_sequence"] = facts.has_sequence;
  said["has_events"] = facts.has_events;
  said["stream_bits"] = facts.stream_bits;
  said["sequence_modulo"] = facts.sequence_modulo;
  said["sequence_step"] = facts.sequence_step;
  said["time_unit_ns"] = facts.time_unit_ns;
  said["unit_bytes_most"] = facts.unit_bytes_most;
  said["timeout_ns"] = facts.timeout_ns;
  return said;
}

// The UDP payloads of a pcap file, one after the other.
class PcapPackets {
 public:
  explicit PcapPackets(const std::string& path) : file_(path) {
    if (link::PcapReader::open(file_.bytes(), reader_) == link::PcapError::none) return;
    throw SetupError("cannot read " + path, "it is no classic pcap file of Ethernet or IP",
                     "convert it: editcap -F nsecpcap FILE NEW");
  }

  // (time_ns, from_address, from_port, to_port, payload), or None at the end.
  nb::object next() {
    link::PcapPacket packet;
    if (!reader_.next(packet)) return nb::none();
    const auto* const data = reinterpret_cast<const char*>(packet.payload.data());
    return nb::make_tuple(packet.time_ns, link::to_string(packet.flow.from_address), packet.flow.from_port, packet.flow.to_port,
                          nb::bytes(data, packet.payload.size()));
  }

  // What was passed over so far, by the names that a replay has for it.
  nb::dict passed_over() const {
    const link::PcapStats& stats = reader_.stats();
    nb::dict counts;
    counts["skipped_not_udp"] = stats.skipped_not_udp;
    counts["skipped_fragment"] = stats.skipped_fragment;
    counts["skipped_cut"] = stats.skipped_cut;
    counts["bytes_damaged"] = stats.bytes_damaged;
    return counts;
  }

 private:
  link::MappedFile file_;
  link::PcapReader reader_;
};

}  // namespace

void bind_format(nb::module_& module) {
  using format::Decoder;
  nb::class_<Decoder>(module, "FormatDecoder", "A declared packet format, compiled. Belongs to one thread.")
      .def(
          "__init__",
          [](Decoder* self, const nb::dict& declaration) {
            new (self) Decoder(config::read<format::Declaration>(value_of(declaration), "format"));
          },
          nb::arg("declaration"), "From a declaration's keys, as nanet.config.Format dumps them. Raises SetupError.")
      .def(
          "facts", [](const Decoder& self) { return facts_of(self.facts()); }, "What is the same for all packets.")
      .def(
          "decode",
          [](Decoder& self, const nb::bytes& packet) {
            format::Packet meaning;
            const format::Refusal refusal = self.decode(bytes_of(packet), meaning);
            if (refusal != format::Refusal::none) return nb::make_tuple(std::string(name_of(refusal)), nb::none());
            return nb::make_tuple(std::string(), meaning_of(meaning));
          },
          nb::arg("packet"), "(refusal, meaning): the name of why it is refused and None, or '' and what the packet means.")
      .def(
          "fields",
          [](const Decoder& self, const nb::bytes& packet) {
            nb::dict values;
            for (const format::NamedValue& one : self.fields(bytes_of(packet))) values[one.name.c_str()] = one.value;
            return values;
          },
          nb::arg("packet"), "The fields of its header by name, refused or not; none of a packet that ends within its header.")
      .def(
          "explain", [](const Decoder& self, const nb::bytes& packet) { return self.explain(bytes_of(packet)); }, nb::arg("packet"),
          "What is in the way of a refused packet, for a person; '' if nothing is.");
  nb::class_<PcapPackets>(module, "PcapPackets", "The UDP payloads of a pcap file. Raises SetupError where it is none.")
      .def(nb::init<const std::string&>(), nb::arg("path"))
      .def("next", &PcapPackets::next, nb::sig("def next(self) -> tuple[int, str, int, int, bytes] | None"),
           "(time_ns, from_address, from_port, to_port, payload), or None at the end.")
      .def("passed_over", &PcapPackets::passed_over, nb::sig("def passed_over(self) -> dict[str, int]"),
           "What gave no packet so far, by name: records, and bytes at the end that are no whole record.");
}

}  // namespace nanet::bindings
