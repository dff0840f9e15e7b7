// SPDX-License-Identifier: Apache-2.0
// Made from include/nanet/contract.hpp by gateware/scripts/make_contract.py; do not edit.
// NAME_BYTES: of a struct; NAME_FIELD_AT: where a field begins in it [B].
package contract_pkg;
  localparam logic [7:0] KIND_BUFFER_FILLED = 8'h1;
  localparam logic [7:0] KIND_PACKET_SENT = 8'h2;
  localparam logic [7:0] KIND_ERROR = 8'h3;
  localparam logic [7:0] KIND_MESSAGE = 8'h4;
  localparam logic [15:0] STATUS_FULL = 16'h1;
  localparam logic [15:0] STATUS_TIMEOUT = 16'h2;
  localparam logic [15:0] STATUS_FLUSH = 16'h4;
  localparam logic [15:0] STATUS_GAP = 16'h8;
  localparam logic [15:0] STATUS_TRUNCATED = 16'h10;
  localparam logic [15:0] STATUS_ERROR = 16'h20;
  localparam logic [15:0] STATUS_RUN_START = 16'h40;
  localparam logic [15:0] STATUS_IN_PLACE = 16'h80;
  localparam logic [15:0] STATUS_UNIT = 16'h100;
  localparam logic [15:0] STATUS_INCOMPLETE = 16'h200;

  localparam int PACKET_REF_BYTES = 8;
  localparam int PACKET_REF_OFFSET_AT = 0;
  localparam int PACKET_REF_BYTES_AT = 4;
  localparam int PACKET_REF_SOURCE_AT = 6;
  localparam logic [15:0] PACKET_REF_SOURCE_MASK = 16'h7FFF;
  localparam logic [15:0] PACKET_REF_RUN_START = 16'h8000;
  typedef struct packed {
    logic [15:0] source;
    logic [15:0] bytes;
    logic [31:0] offset;
  } packet_ref_t;

  localparam int COMPLETION_BYTES = 64;
  localparam int COMPLETION_FIRST_PACKET_NS_AT = 0;
  localparam int COMPLETION_LAST_PACKET_NS_AT = 8;
  localparam int COMPLETION_TAG_AT = 16;
  localparam int COMPLETION_BYTES_AT = 24;
  localparam int COMPLETION_EVENT_COUNT_AT = 28;
  localparam int COMPLETION_PACKETS_LOST_AT = 32;
  localparam int COMPLETION_STATUS_AT = 36;
  localparam int COMPLETION_KIND_AT = 38;
  localparam int COMPLETION_RESERVED0_AT = 39;
  localparam int COMPLETION_RESERVED1_AT = 40;
  localparam int COMPLETION_BUFFER_INDEX_AT = 48;
  localparam int COMPLETION_PACKET_COUNT_AT = 50;
  localparam int COMPLETION_STRIDE_BYTES_AT = 52;
  localparam int COMPLETION_CLOP_AT = 54;
  localparam int COMPLETION_PACKET_EVENTS_MAX_AT = 55;
  localparam int COMPLETION_FIRST_PACKET_LOW_AT = 56;
  localparam int COMPLETION_SEQUENCE_AT = 60;
  typedef struct packed {
    logic [31:0] sequence_;
    logic [31:0] first_packet_low;
    logic [7:0] packet_events_max;
    logic [7:0] clop;
    logic [15:0] stride_bytes;
    logic [15:0] packet_count;
    logic [15:0] buffer_index;
    logic [63:0] reserved1;
    logic [7:0] reserved0;
    logic [7:0] kind;
    logic [15:0] status;
    logic [31:0] packets_lost;
    logic [31:0] event_count;
    logic [31:0] bytes;
    logic [63:0] tag;
    logic [63:0] last_packet_ns;
    logic [63:0] first_packet_ns;
  } completion_t;

  localparam int TX_DESCRIPTOR_BYTES = 64;
  localparam int TX_DESCRIPTOR_ADDRESS_AT = 0;
  localparam int TX_DESCRIPTOR_BYTES_AT = 8;
  localparam int TX_DESCRIPTOR_DESTINATION_AT = 12;
  localparam int TX_DESCRIPTOR_TAG_AT = 16;
  localparam int TX_DESCRIPTOR_RESERVED_AT = 24;
  localparam int TX_DESCRIPTOR_SEQUENCE_AT = 56;
  typedef struct packed {
    logic [63:0] sequence_;
    logic [3:0][63:0] reserved;
    logic [63:0] tag;
    logic [31:0] destination;
    logic [31:0] bytes;
    logic [63:0] address;
  } tx_descriptor_t;

  localparam int MESSAGE_DESCRIPTOR_BYTES = 64;
  localparam int MESSAGE_DESCRIPTOR_ADDRESS_AT = 0;
  localparam int MESSAGE_DESCRIPTOR_BYTES_AT = 8;
  localparam int MESSAGE_DESCRIPTOR_NODE_AT = 12;
  localparam int MESSAGE_DESCRIPTOR_PORT_AT = 14;
  localparam int MESSAGE_DESCRIPTOR_KIND_AT = 15;
  localparam int MESSAGE_DESCRIPTOR_TAG_AT = 16;
  localparam int MESSAGE_DESCRIPTOR_REMOTE_AT = 24;
  localparam int MESSAGE_DESCRIPTOR_NONCE_AT = 32;
  localparam int MESSAGE_DESCRIPTOR_LOCAL_NONCE_AT = 36;
  localparam int MESSAGE_DESCRIPTOR_PROCESS_AT = 40;
  localparam int MESSAGE_DESCRIPTOR_RESERVED0_AT = 42;
  localparam int MESSAGE_DESCRIPTOR_RESERVED1_AT = 44;
  localparam int MESSAGE_DESCRIPTOR_RESERVED2_AT = 48;
  localparam int MESSAGE_DESCRIPTOR_SEQUENCE_AT = 56;
  typedef struct packed {
    logic [63:0] sequence_;
    logic [63:0] reserved2;
    logic [31:0] reserved1;
    logic [15:0] reserved0;
    logic [15:0] process;
    logic [31:0] local_nonce;
    logic [31:0] nonce;
    logic [63:0] remote;
    logic [63:0] tag;
    logic [7:0] kind;
    logic [7:0] port;
    logic [15:0] node;
    logic [31:0] bytes;
    logic [63:0] address;
  } message_descriptor_t;
endpackage
