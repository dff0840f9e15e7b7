// SPDX-License-Identifier: Apache-2.0
// Constants of MGP and M2EGP packets (docs/formats.md, docs/formats-merged.md) and the arithmetic of their checksum.
package event_pkg;
  localparam int HEADER_BYTES = 16;
  localparam int EVENT_HEADER_BYTES = 8;
  localparam int MARKER_BYTES = 24;
  localparam int PACKET_BYTES_MAX = 1472;  // of MGP
  localparam int PADDED_BYTES = 1168;
  localparam int PADDED_EVENTS_MAX = 16;
  localparam int PADDED_HITS_MAX = 32;
  localparam int SLOT_BYTES = 72;
  localparam int HIT_COUNT_PLACE = 5;  // byte of an event header
  localparam int HITS_MAX = 128;       // of a merged event
  localparam int EVENTS_MAX = 255;     // of a packet of M2EGP
  localparam int KEY_BITS = 40;        // timestamp << 8 | fine time
  localparam logic [3:0] LAYOUT_PADDED = 4'd1;
  localparam logic [3:0] LAYOUT_PACKED = 4'd2;
  localparam logic [7:0] FORMAT_MERGED = 8'd3;

  // Modulo 65535: 0 to 65534.
  function automatic logic [15:0] reduced(input logic [24:0] sum);
    logic [15:0] folded;
    logic [16:0] one_more;
    folded = sum[15:0] + 16'(sum[24:16]);
    one_more = 17'(sum[15:0]) + 17'(sum[24:16]) + 17'd1;
    reduced = one_more[16] ? one_more[15:0] : folded;
  endfunction

  // Halves of 16 bits in a word whose bytes tkeep says.
  function automatic logic [2:0] halves(input logic [7:0] keep);
    halves = 3'(|keep[1:0]) + 3'(|keep[3:2]) + 3'(|keep[5:4]) + 3'(|keep[7:6]);
  endfunction

  // And the other way round.
  function automatic logic [7:0] keep_of(input logic [2:0] count);
    keep_of = {{2{count > 3'd3}}, {2{count > 3'd2}}, {2{count > 3'd1}}, {2{count > 3'd0}}};
  endfunction

  function automatic logic [63:0] kept(input logic [63:0] data, input logic [2:0] count);
    kept = {{16{count > 3'd3}}, {16{count > 3'd2}}, {16{count > 3'd1}}, {16{count > 3'd0}}} & data;
  endfunction
endpackage
