// SPDX-License-Identifier: Apache-2.0
// Frames between the NIC and a host on Ethernet, and the records in them: docs/design/gateware-board.md.
package host_link_pkg;
  localparam logic [15:0] ETHERTYPE = 16'h88B5;  // IEEE 802, local experiments
  localparam logic [7:0] VERSION = 8'd1;
  localparam int FRAME_RECORD_BYTES_MAX = 1440;
  localparam int HEADER_WORDS = 3;

  typedef struct packed {
    logic [5:0] unused;
    logic       data;   // there are records, and the frame's number counts
    logic       open;   // the host begins anew, with this session
  } flags_t;

  // The third word of a frame.
  typedef struct packed {
    logic [15:0] acknowledged;  // the number of the next frame with records that the sender waits for
    logic [15:0] number;        // of this frame, or of the next with records
    logic [31:0] session;
  } numbers_t;

  typedef enum logic [3:0] {
    NOTHING = 0,          // the rest of the frame is filling
    WRITE = 1,            // words of the bus follow, two words of 8 bytes each
    READ = 2,
    REGISTER_ANSWER = 3,  // the value follows; failed: there is no such register
    INTERRUPT = 4,
    READ_ANSWER = 5,      // words of the bus follow
    REGISTER_WRITE = 6,   // the value follows
    REGISTER_READ = 7
  } kind_t;

  // The first word of a record.
  typedef struct packed {
    logic [3:0]  kind;
    logic        failed;
    logic [6:0]  tag;
    logic [11:0] bytes;
    logic [39:0] address;
  } record_t;

  // An Ethernet address as it lies in a word: its first byte is the lowest.
  function automatic logic [47:0] in_lanes(input logic [47:0] mac);
    in_lanes = {mac[7:0], mac[15:8], mac[23:16], mac[31:24], mac[39:32], mac[47:40]};
  endfunction
endpackage
