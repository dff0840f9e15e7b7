// SPDX-License-Identifier: Apache-2.0
// What stands beside the streams between an Ethernet port and the host's port, and what a port is told.
package port_pkg;
  // Where a payload goes. To a port of the node: its `source` is the destination there.
  localparam int ROUTE_BITS = 4;
  localparam logic [ROUTE_BITS-1:0] ROUTE_HOST = 4'd0;
  localparam logic [ROUTE_BITS-1:0] ROUTE_EVENTS = 4'd1;      // to be merged
  localparam logic [ROUTE_BITS-1:0] ROUTE_PORT_0 = 4'd8;

  // Beside a received payload, from its first word to its last.
  typedef struct packed {
    logic [1:0]  clop;
    logic [15:0] source;       // PacketRef::source
    logic [7:0]  event_count;
    logic [15:0] bytes;
    logic [63:0] arrival_ns;   // when its first word left the parser, as parsed_cycle
    logic [63:0] start_cycle;  // of its frame
    logic [63:0] parsed_cycle;
  } payload_t;

  localparam int PAYLOAD_META_BITS = 234;  // of payload_t

  // The same in a node, until the router has looked at it.
  typedef struct packed {
    logic [ROUTE_BITS-1:0] route;
    payload_t              payload;
  } routed_t;

  // Beside a payload to be sent.
  typedef struct packed {
    logic [7:0]  destination;  // of the port's table
    logic [15:0] bytes;
  } sending_t;

  // An Ethernet port's registers. Tables are written one entry a cycle.
  typedef struct packed {
    logic [47:0] mac;
    logic [31:0] address;

    logic        group_write;
    logic [7:0]  group_index;
    logic [31:0] group_address;

    logic                  match_write;
    logic [7:0]            match_index;
    logic                  match_enable;
    logic [15:0]           match_port;
    logic [31:0]           match_source_address;
    logic [31:0]           match_source_mask;
    logic [ROUTE_BITS-1:0] match_route;
    logic [1:0]            match_clop;
    logic [15:0]           match_source;
    logic                  match_counts_events;  // byte 3 of a payload is its number of events

    logic        destination_write;
    logic [7:0]  destination_index;
    logic        destination_enable;
    logic [47:0] destination_mac;
    logic [31:0] destination_address;
    logic [15:0] destination_port;
    logic [15:0] destination_source_port;
  } settings_t;

  // What a page table is told. Tables are written one entry a cycle.
  typedef struct packed {
    logic        region_write;
    logic [7:0]  region_index;
    logic        region_valid;
    logic [4:0]  region_page_shift;
    logic [15:0] region_first;
    logic [16:0] region_count;
    logic        entry_write;
    logic [15:0] entry_index;
    logic [63:0] entry_data;
  } pages_t;

  // What stage_merge is told. table_write and forget are pulses.
  typedef struct packed {
    logic [7:0]  links;
    logic        complete_only;
    logic        parts;
    logic        forget;
    logic [31:0] window_cycles;
    logic [31:0] lapse_cycles;
    logic [39:0] jump;
    logic [31:0] flush_cycles;
    logic [7:0]  source_id;
    logic [7:0]  source_sub_id;
    logic        table_enable;
    logic        table_write;
    logic [10:0] table_index;
    logic [15:0] table_hit;
  } merge_settings_t;
endpackage
