// SPDX-License-Identifier: Apache-2.0
// Words of APElink and APEnet+ packets: docs/apelink-format.md.
package apenet_pkg;
  localparam int WORD_BYTES = 16;
  localparam int PAYLOAD_BYTES_MAX = 4096;
  localparam int PAYLOAD_WORDS_MAX = PAYLOAD_BYTES_MAX / WORD_BYTES;
  localparam int VCS = 2;  // virtual channels

  localparam logic [4:0] TYPE_HEADER_ONLY = 5'h10;  // the bit that says so

  // The first word of a packet, without its check bits.
  typedef struct packed {
    logic [9:0] hops;
    logic [47:0] address;
    logic [13:0] bytes;  // of the payload
    logic [4:0] packet_type;
    logic out_of_lattice;
    logic reserved;
    logic [3:0] port;
    logic [4:0] z;
    logic [4:0] y;
    logic [5:0] x;
    logic [15:0] process;
    logic [4:0] vc;  // 0 or 1
  } header_t;
  // What a router may change: the CRC takes it as zero.
  localparam logic [119:0] HEADER_FIXED = {10'h0, 105'h1FF_FFFF_FFFF_FFFF_FFFF_FFFF_FFFF, 5'h0};

  // A node's place in a torus, and how many nodes there are in each dimension.
  typedef struct packed {
    logic [4:0] z;
    logic [4:0] y;
    logic [5:0] x;
  } place_t;
  typedef struct packed {
    logic [5:0] z;
    logic [5:0] y;
    logic [6:0] x;
  } shape_t;

  // The last word of a packet. good and flagged are all that it may hold above its CRC.
  localparam logic [95:0] FOOTER_GOOD = 96'hFFFF_FFFF_FFFF_FFFF_FFFF_0000;
  localparam logic [95:0] FOOTER_FLAGGED = 96'hFFFF_FFFF_FFFF_FFFF_FFFF_FFFF;

  // A word that says that the next one is for the link. Two bits or more from every header, and no control word and no footer.
  localparam logic [127:0] MAGIC = 128'h243F6A88_85A308D3_13198A2E_03707344;

  // Control words: a CRC-32 of the first twelve bytes stands above them. Counts are of words, modulo 2048.
  localparam logic [7:0] CONTROL_START = 8'd1;    // a packet follows
  localparam logic [7:0] CONTROL_CREDIT = 8'd2;
  localparam logic [7:0] CONTROL_LITERAL = 8'd3;  // the word was MAGIC itself
  localparam logic [7:0] CONTROL_SKIP = 8'd4;
  localparam int COUNT_BITS = 11;
  typedef struct packed {
    logic [COUNT_BITS-1:0] headers;  // headers and footers
    logic [COUNT_BITS-1:0] data;
  } counts_t;
  typedef struct packed {
    counts_t sent_1;   // virtual channel 1
    counts_t sent_0;
    counts_t limit_1;  // who receives this may have sent so many
    counts_t limit_0;
    logic [7:0] control_type;
  } credit_t;
  typedef struct packed {
    logic zero;
    logic vc;
    logic [8:0] words;                   // of payload
    logic [COUNT_BITS-1:0] headers_1;    // sent before this packet
    logic [COUNT_BITS-1:0] headers_0;
    logic [COUNT_BITS-1:0] data;         // of its virtual channel
    counts_t limit_1;
    counts_t limit_0;
    logic [7:0] control_type;
  } start_t;

  // Words that so many bytes of payload take.
  function automatic logic [10:0] payload_words(input logic [13:0] bytes);
    payload_words = 11'((15'(bytes) + 15'd15) >> 4);
  endfunction
endpackage
