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

  // Beside a payload to be sent.
  typedef struct packed {
    logic [7:0]  destination;  // of the port's table
    logic [15:0] bytes;
  } sending_t;

  // An Ethernet port's registers. Tables are written one entry a cycle.
  typedef struct packed {
    logic [47:0] mac;
    logic [31:0] address;

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
endpackage
