// SPDX-License-Identifier: Apache-2.0
// Made from gateware/registers/counts.toml by scripts/make_registers.py; do not edit.
// clang-format off
#pragma once

namespace nanet::link::gateware {

namespace rx {
enum : unsigned { parsed, preamble, control, oversize, runt, fcs, mac_address, ethertype, no_header, version, options, header_checksum, fragment, protocol, address, length, empty, no_match, truncated, udp_checksum, stored, overflow, disabled, too_long, no_buffer, bad, count };
inline constexpr unsigned kForeign[] = {mac_address, ethertype, protocol, address, no_match};
inline constexpr unsigned kMalformed[] = {preamble, control, runt, fcs, no_header, version, options, header_checksum, fragment, length, empty, truncated, udp_checksum};
inline constexpr unsigned kOversized[] = {oversize, too_long};
inline constexpr unsigned kDropped[] = {overflow, disabled, no_buffer};
}  // namespace rx

namespace tx {
enum : unsigned { sent, refused, unreadable, read_fault, read_error, framed, aborted, destination, underrun, completion_fault, count };
inline constexpr unsigned kNotSent[] = {refused, unreadable, aborted, destination};
}  // namespace tx

namespace reply {
enum : unsigned { answered_arp, answered_echo, arp_malformed, arp_other, icmp_length, icmp_checksum, icmp_other, echo_large, busy, replied, count };
}  // namespace reply

namespace port {
enum : unsigned { to_events, refused, full, no_route, forwarded, sent_to, count };
inline constexpr unsigned kForeign[] = {no_route};
inline constexpr unsigned kDropped[] = {full};
}  // namespace port

namespace merge {
enum : unsigned { length, format, checksum, full, packet, marker, part, late, jump, disabled, count };
inline constexpr unsigned kMalformed[] = {length, format, checksum};
inline constexpr unsigned kDropped[] = {full};
}  // namespace merge

namespace events {
enum : unsigned { complete, missing, overflow, incomplete, cut, packet, count };
}  // namespace events

namespace node {
enum : unsigned { to_host, from_host, host_no_route, count };
}  // namespace node

}  // namespace nanet::link::gateware
