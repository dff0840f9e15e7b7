// SPDX-License-Identifier: Apache-2.0
// Made from gateware/registers/counts.toml by scripts/make_registers.py; do not edit.
package nic_counts_pkg;
  localparam int RX_COUNTS = 26;
  typedef struct packed {
    logic bad;
    logic no_buffer;
    logic too_long;
    logic disabled;
    logic overflow;
    logic stored;
    logic udp_checksum;
    logic truncated;
    logic no_match;
    logic empty;
    logic length;
    logic address;
    logic protocol;
    logic fragment;
    logic header_checksum;
    logic options;
    logic version;
    logic no_header;
    logic ethertype;
    logic mac_address;
    logic fcs;
    logic runt;
    logic oversize;
    logic control;
    logic preamble;
    logic parsed;
  } rx_counts_t;
  localparam int MAC_DROPS = 5;
  typedef struct packed {
    logic fcs;
    logic runt;
    logic oversize;
    logic control;
    logic preamble;
  } mac_drops_t;
  localparam int FRAME_DROPS = 19;
  typedef struct packed {
    logic udp_checksum;
    logic truncated;
    logic no_match;
    logic empty;
    logic length;
    logic address;
    logic protocol;
    logic fragment;
    logic header_checksum;
    logic options;
    logic version;
    logic no_header;
    logic ethertype;
    logic mac_address;
    logic fcs;
    logic runt;
    logic oversize;
    logic control;
    logic preamble;
  } frame_drops_t;
  localparam int TX_COUNTS = 10;
  typedef struct packed {
    logic completion_fault;
    logic underrun;
    logic destination;
    logic aborted;
    logic framed;
    logic read_error;
    logic read_fault;
    logic unreadable;
    logic refused;
    logic sent;
  } tx_counts_t;
  localparam int MAC_ENDS = 3;
  typedef struct packed {
    logic underrun;
    logic aborted;
    logic framed;
  } mac_ends_t;
  localparam int REPLY_COUNTS = 10;
  typedef struct packed {
    logic replied;
    logic busy;
    logic echo_large;
    logic icmp_other;
    logic icmp_checksum;
    logic icmp_length;
    logic arp_other;
    logic arp_malformed;
    logic answered_echo;
    logic answered_arp;
  } reply_counts_t;
  localparam int REQUEST_ENDS = 9;
  typedef struct packed {
    logic busy;
    logic echo_large;
    logic icmp_other;
    logic icmp_checksum;
    logic icmp_length;
    logic arp_other;
    logic arp_malformed;
    logic answered_echo;
    logic answered_arp;
  } request_ends_t;
endpackage
