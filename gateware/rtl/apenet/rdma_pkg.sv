// SPDX-License-Identifier: Apache-2.0
// Packets, jobs and events of remote memory access in the torus: docs/apenet-rdma-format.md.
package rdma_pkg;
  // packet_type of a header. 2 is APEnet+'s, to Ethernet; the highest bit says that there is no payload.
  localparam logic [4:0] TYPE_PUT = 5'h01;
  localparam logic [4:0] TYPE_GET = 5'h03;
  localparam logic [4:0] TYPE_REPLY = 5'h04;
  localparam logic [4:0] TYPE_SEND = 5'h05;
  localparam logic [4:0] TYPE_EVENT = 5'h11;

  localparam int PACKETS_MAX = 64;                            // of a message
  localparam int DATA_BYTES_MAX = 4080;                       // of a packet, after its message word
  localparam int MESSAGE_BYTES_MAX = 64 * DATA_BYTES_MAX - 15;  // wherever it begins
  localparam int REGION_BITS = 8;
  localparam int OFFSET_BITS = 40;
  localparam int BYTES_BITS = 18;

  // The first word of a payload.
  typedef struct packed {
    logic [43:0] zero;
    logic [3:0] port;                 // of the sender, for what is answered
    logic [7:0] last;                 // number of the message's last packet
    logic [7:0] packet;               // number of this one, from 0
    logic [15:0] number;              // of the message
    apenet_pkg::place_t source;
    logic [31:0] nonce;               // of the region that `address` names
  } message_t;
  // The second word of a GET: where what it asks for is to land.
  typedef struct packed {
    logic [15:0] zero;
    logic [31:0] bytes;
    logic [31:0] nonce;
    logic [REGION_BITS-1:0] region;
    logic [OFFSET_BITS-1:0] offset;
  } landing_t;
  // The address of an EVENT, and of a SEND, whose value is 0.
  typedef struct packed {
    apenet_pkg::place_t source;
    logic [15:0] number;
    logic [15:0] value;
  } event_address_t;

  // A message to send. PUT: from local_ (a device address) to the remote region. GET: from the remote region to local_ (region and offset) with local_nonce.
  // REPLY: from local_ (region and offset) with local_nonce to the remote region. SEND: from local_, to where its receiver likes. EVENT: offset holds its value.
  typedef struct packed {
    logic [4:0] kind;
    apenet_pkg::place_t to;
    logic [3:0] port;
    logic [15:0] process;
    logic [15:0] number;              // of a REPLY
    logic [31:0] nonce;
    logic [REGION_BITS-1:0] region;
    logic [OFFSET_BITS-1:0] offset;
    logic [47:0] local_;
    logic [31:0] local_nonce;
    logic [31:0] bytes;
    logic [63:0] tag;                 // comes back with the completion
  } job_t;

  // A packet to make: rdma_cut says what, rdma_pack makes it.
  typedef struct packed {
    apenet_pkg::header_t header;
    message_t message;
    landing_t landing;
    logic [7:0] words_in;             // of memory, less 1
    logic [7:0] words_out;            // of data in the packet, less 1
    logic [3:0] lane_in;              // of the first byte in memory
    logic [3:0] lane_out;             // and in the packet
    logic [3:0] lane_end;             // after the last byte, in the packet's last word; 0: none is
    logic own;                        // of the TX ring
    logic final_;                     // of its message
    logic refused;                    // no packet, but what became of the job
    logic [63:0] tag;
  } command_t;

  // What became of a message that came, or was asked for.
  typedef struct packed {
    logic failed;
    logic timed_out;
    logic [4:0] kind;
    apenet_pkg::place_t source;
    logic [15:0] number;
    logic [15:0] process;
    logic [15:0] value;
    logic [BYTES_BITS-1:0] bytes;     // that landed
    logic [63:0] tag;                 // of a GET's job
  } event_t;

  // What rdma_messages says of a packet.
  typedef enum logic [2:0] {
    LANDS,
    STALE,      // its message has ended, or was never begun
    DUPLICATE,  // it has landed before
    MISFIT,     // its numbers are not those of its message
    OUTSIDE,    // no place of the table is its source's
    NO_QUEUE    // the completion queue is full, and what waits for it too
  } verdict_t;

  // What became of a packet: one pulse of one bit.
  localparam int COUNTS = 20;
  localparam int COUNT_LANDED = 0;     // of a PUT or REPLY
  localparam int COUNT_EVENT = 1;
  localparam int COUNT_GET = 2;        // a request went on to the sender
  localparam int DROP_FLAGGED = 3;     // its footer says that it was found bad, and counted, on the way
  localparam int DROP_CRC = 4;         // it is bad, and its footer does not say so
  localparam int DROP_TYPE = 5;
  localparam int DROP_LENGTH = 6;
  localparam int DROP_KEY = 7;         // no such region, or another nonce
  localparam int DROP_RIGHTS = 8;
  localparam int DROP_BOUNDS = 9;
  localparam int DROP_PAGE = 10;       // the page table refused a part of it
  localparam int DROP_STALE = 11;
  localparam int DROP_DUPLICATE = 12;
  localparam int DROP_MISFIT = 13;
  localparam int DROP_OUTSIDE = 14;
  localparam int DROP_QUEUE = 15;
  localparam int DROP_REQUESTS = 16;   // a GET beyond what nodes may have outstanding
  localparam int COUNT_SEND = 17;      // it went on to its CLOP
  localparam int DROP_NO_MATCH = 18;   // a SEND that no entry of the match table wants
  localparam int DROP_FULL = 19;       // a SEND for which there is no room before the CLOPs
endpackage
