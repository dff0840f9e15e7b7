// SPDX-License-Identifier: Apache-2.0
// What goes over the four lanes of an APElink: docs/apelink-format.md.
package apelane_pkg;
  localparam int LANES = 4;
  localparam int NUMBER_BITS = 6;

  // LINE_BITS, of a lane in a cycle, says the code too.
  localparam int BITS_8B10B = 40;
  localparam int BITS_64B66B = 33;
  function automatic int slip_bits(input int line_bits);
    slip_bits = line_bits == BITS_64B66B ? 7 : 6;
  endfunction

  // What an end says in every mark. 0 is no session.
  typedef struct packed {
    logic [3:0] heard;    // the session of the other end that it hears
    logic [3:0] session;  // its own: of this attempt, and of the link that comes of it
  } call_t;

  // Four bytes of a lane that are no word's: byte 0 lowest. 64b/66b does not send the comma.
  typedef struct packed {
    logic [7:0] check;
    logic [NUMBER_BITS-1:0] number;  // of the sender's cycle
    logic [1:0] lane;
    call_t call;
    logic [7:0] comma;
  } mark_t;

  function automatic logic [7:0] check_of(input call_t call, input logic [NUMBER_BITS-1:0] number, input logic [1:0] lane);
    check_of = call ^ {number, lane} ^ 8'hA5;
  endfunction

  // What a lane has received in a cycle.
  typedef struct packed {
    logic locked;  // to symbols
    logic gap;     // before it something was lost
    logic mark;    // a mark, and right
    logic astray;  // a mark that is right, but of another lane
    logic bad;     // it has an error
    logic [31:0] data;
  } lane_word_t;

  // What goes through the elastic buffer.
  typedef enum logic [1:0] {
    WORD,
    MARK,
    FIRST_MARK  // since the lanes are in step
  } kind_t;
endpackage
