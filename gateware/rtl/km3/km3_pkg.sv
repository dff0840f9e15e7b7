// SPDX-License-Identifier: Apache-2.0
// What goes over the link of a floor: docs/design/km3-link.md. Words of two bytes, the low one first on the wire.
package km3_pkg;
  localparam logic [7:0] IDLE = 8'h50;       // D16.2, after K28.5: nothing
  localparam logic [7:0] KIND_DOWN = 8'hA6;  // after K28.5: a frame from the shore begins,
  localparam logic [7:0] KIND_UP = 8'hC9;    // or one from a floor; the two differ in six bits, each from IDLE in four or more
  localparam logic [7:0] EXPRESS = 8'hFB;    // K27.7, and in the second word
  localparam logic [7:0] EXPRESS_END = 8'hFD;  // K29.7
  localparam logic [15:0] IDLE_WORD = {IDLE, code_8b10b_pkg::K28_5};

  localparam int HEAD_WORDS = 5;   // with the comma, before the counts
  localparam int CHECK_WORDS = 2;  // a CRC-32

  // Of a frame: its number in this second, the second of GPS.
  typedef struct packed {
    logic [31:0] second;
    logic [15:0] number;
  } time_t;

  // A cycle of it: the word that is next.
  typedef struct packed {
    time_t at;
    logic [15:0] word;
  } moment_t;

  // What an end says of itself.
  typedef struct packed {
    logic [5:0] none;
    logic timed;  // its time is right
    logic hears;  // its receiver is aligned
  } flags_t;

  typedef struct packed {
    flags_t flags;
    logic [7:0] floor;
    time_t at;
  } head_t;

  // Of a frame that came: its head, what the port says of its floor, and the cycles of the core in which head and verdict came.
  typedef struct packed {
    head_t head;
    logic sampled;
    logic [7:0] tower;
    logic [63:0] start_cycle;
    logic [63:0] parsed_cycle;
  } frame_meta_t;
  localparam int FRAME_META_BITS = 201;

  // What a port does with what comes; each may change at any time, and what begins later follows it. run_begins is a pulse: run, second and slice_frames are
  // those of its cycle.
  typedef struct packed {
    logic        run_begins;
    logic [30:0] run;
    logic [31:0] second;        // in which slice 0 of the run begins
    logic [15:0] slice_frames;  // of a slice
    logic        enable;
    logic        sampled;       // hits are sampled ones
    logic [ 7:0] tower;
    logic [ 7:0] floor;
    logic [ 3:0][ 1:0] clop;    // of optical modules, hydrophones, instruments, slow control, the first lowest
    logic [ 3:0][15:0] source;
  } port_settings_t;

  // What a port says of its link. head and slip are those of the last head that came, trip and phase as measured last.
  typedef struct packed {
    logic aligned;
    logic sends;
    logic [4:0] slip;
    head_t head;
    logic [31:0] trip;
    logic [7:0] phase;
  } port_status_t;

  // Of express codes: whether one is on its way down, and when the last one left; the oldest of those that came and were not taken, if there is one.
  typedef struct packed {
    logic busy;
    moment_t sent_at;
    logic came;
    logic [7:0] code;
    moment_t came_at;
  } express_status_t;

  // What a receiver counts: pulses, and of `lost` a number of frames with a good head.
  typedef struct packed {
    logic count_up;
    logic count_down;
    logic restarts;
    logic count_good;
    logic drop_head;
    logic drop_floor;
    logic drop_cut;
    logic drop_code;
    logic drop_symbol;
    logic drop_crc;
    logic error_place;
    logic error_code;
    logic error_order;
    logic error_direction;
    logic error_stray;
    logic error_express;
    logic error_time;
    logic [15:0] lost;
  } rx_counts_t;

  // --- the slots of a floor: words of two bytes; the first one lowest. Six optical modules, two hydrophones, instruments, slow control ---
  localparam int UP_SLOTS = 10;
  localparam int SLOT_HYDROPHONE = 6;
  localparam int SLOT_INSTRUMENTS = 8;
  localparam int SLOT_CONTROL = 9;
  localparam int DOWN_SLOTS = 1;  // slow control

  // Words of a frame from the floor that are in no slot, four idle ones among them: room for two express codes in a frame whose slots are full.
  localparam int SPARE_WORDS = 4;
  localparam int UP_OTHER_WORDS = HEAD_WORDS + UP_SLOTS + 2 * CHECK_WORDS + SPARE_WORDS;
endpackage
