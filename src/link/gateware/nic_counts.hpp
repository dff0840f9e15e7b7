// SPDX-License-Identifier: Apache-2.0
// Made from gateware/registers/counts.toml by scripts/make_registers.py; do not edit.
// clang-format off
#pragma once

#include <string_view>

namespace nanet::link::gateware {

namespace rx {
enum : unsigned { parsed, preamble, control, oversize, runt, fcs, cut, mac_address, ethertype, no_header, version, options, header_checksum, fragment, protocol, address, length, empty, no_match, truncated, udp_checksum, stored, overflow, disabled, too_long, no_buffer, bad, count };
inline constexpr std::string_view kNames[] = {"parsed", "preamble", "control", "oversize", "runt", "fcs", "cut", "mac_address", "ethertype", "no_header", "version", "options", "header_checksum", "fragment", "protocol", "address", "length", "empty", "no_match", "truncated", "udp_checksum", "stored", "overflow", "disabled", "too_long", "no_buffer", "bad"};
inline constexpr unsigned kForeign[] = {mac_address, ethertype, protocol, address, no_match};
inline constexpr unsigned kMalformed[] = {preamble, control, runt, fcs, no_header, version, options, header_checksum, fragment, length, empty, truncated, udp_checksum};
inline constexpr unsigned kOversized[] = {oversize, too_long};
inline constexpr unsigned kDropped[] = {cut, overflow, disabled, no_buffer};
}  // namespace rx

namespace tx {
enum : unsigned { sent, refused, unreadable, read_fault, read_error, framed, aborted, destination, underrun, completion_fault, count };
inline constexpr std::string_view kNames[] = {"sent", "refused", "unreadable", "read_fault", "read_error", "framed", "aborted", "destination", "underrun", "completion_fault"};
inline constexpr unsigned kNotSent[] = {refused, unreadable, aborted, destination};
}  // namespace tx

namespace reply {
enum : unsigned { answered_arp, answered_echo, arp_malformed, arp_other, icmp_length, icmp_checksum, icmp_other, echo_large, busy, replied, count };
inline constexpr std::string_view kNames[] = {"answered_arp", "answered_echo", "arp_malformed", "arp_other", "icmp_length", "icmp_checksum", "icmp_other", "echo_large", "busy", "replied"};
}  // namespace reply

namespace port {
enum : unsigned { to_events, refused, full, no_route, forwarded, sent_to, count };
inline constexpr std::string_view kNames[] = {"to_events", "refused", "full", "no_route", "forwarded", "sent_to"};
inline constexpr unsigned kForeign[] = {no_route};
inline constexpr unsigned kDropped[] = {full};
}  // namespace port

namespace merge {
enum : unsigned { length, format, checksum, full, packet, marker, part, late, jump, disabled, count };
inline constexpr std::string_view kNames[] = {"length", "format", "checksum", "full", "packet", "marker", "part", "late", "jump", "disabled"};
inline constexpr unsigned kMalformed[] = {length, format, checksum};
inline constexpr unsigned kDropped[] = {full};
}  // namespace merge

namespace events {
enum : unsigned { complete, missing, overflow, incomplete, cut, packet, count };
inline constexpr std::string_view kNames[] = {"complete", "missing", "overflow", "incomplete", "cut", "packet"};
}  // namespace events

namespace node {
enum : unsigned { to_host, from_host, host_no_route, count };
inline constexpr std::string_view kNames[] = {"to_host", "from_host", "host_no_route"};
}  // namespace node

namespace km3 {
enum : unsigned { count_up, count_down, restarts, count_good, drop_head, drop_floor, drop_cut, drop_code, drop_symbol, drop_crc, lost, error_place, error_code, error_order, error_direction, error_stray, error_express, error_time, error_gps, error_second, error_cut, error_trip, error_phase, error_tx_phase, error_tx_failed, overrun, full, unplaced, control_only, placed, missing, packet, sound_cut, queue_full, no_route, forwarded, to_floor, to_floor_full, to_floor_cut, express_sent, express_dark, express_refused, express_taken, express_unread, count };
inline constexpr std::string_view kNames[] = {"count_up", "count_down", "restarts", "count_good", "drop_head", "drop_floor", "drop_cut", "drop_code", "drop_symbol", "drop_crc", "lost", "error_place", "error_code", "error_order", "error_direction", "error_stray", "error_express", "error_time", "error_gps", "error_second", "error_cut", "error_trip", "error_phase", "error_tx_phase", "error_tx_failed", "overrun", "full", "unplaced", "control_only", "placed", "missing", "packet", "sound_cut", "queue_full", "no_route", "forwarded", "to_floor", "to_floor_full", "to_floor_cut", "express_sent", "express_dark", "express_refused", "express_taken", "express_unread"};
inline constexpr unsigned kDropped[] = {overrun, full, queue_full};
}  // namespace km3

namespace km3_node {
enum : unsigned { gps_pulse, gps_period, gps_silent, to_host, from_host, host_no_route, count };
inline constexpr std::string_view kNames[] = {"gps_pulse", "gps_period", "gps_silent", "to_host", "from_host", "host_no_route"};
}  // namespace km3_node

namespace ape {
enum : unsigned { landed, events, get, flagged, crc, packet_type, length, key, rights, bounds, page, stale, duplicate, misfit, outside, no_queue, requests, send, no_match, full, gap, left, unreadable, refused, reply_refused, completion_fault, forwarded, no_route, missed, count };
inline constexpr std::string_view kNames[] = {"landed", "events", "get", "flagged", "crc", "packet_type", "length", "key", "rights", "bounds", "page", "stale", "duplicate", "misfit", "outside", "no_queue", "requests", "send", "no_match", "full", "gap", "left", "unreadable", "refused", "reply_refused", "completion_fault", "forwarded", "no_route", "missed"};
}  // namespace ape

namespace ape_link {
enum : unsigned { sent, down, good, flagged, crc, cut, header, lost, noise, corrected, count };
inline constexpr std::string_view kNames[] = {"sent", "down", "good", "flagged", "crc", "cut", "header", "lost", "noise", "corrected"};
}  // namespace ape_link

namespace ape_router {
enum : unsigned { routed, length, outside, turn, port, hops, count };
inline constexpr std::string_view kNames[] = {"routed", "length", "outside", "turn", "port", "hops"};
}  // namespace ape_router

}  // namespace nanet::link::gateware
