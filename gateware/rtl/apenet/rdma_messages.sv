// SPDX-License-Identifier: Apache-2.0
// Which messages are under way, and which of their packets have landed: a line for each node that sends, and one for each GET of ours. Each message ends once:
// with its last packet, or as failed.
//
// A node numbers its messages to another one after the other, and the network keeps them in order, so a line holds one message: the first packet of the next one
// says that what the message before lacks is lost. Packets of a message may come in any order. A GET's line is opened by our sender, before its request leaves.
//
// Contract
//   * A packet is looked for (look_valid with look_ready), judged (verdict_valid, two cycles later), and if the verdict is LANDS it has landed (land) or has
//     not (leave) when its sender's words are known to be good. Until then no other is looked for.
//   * An event is told when a message but a SEND ends: complete; failed, because the next one of its node has begun; failed, because none of its packets has landed for
//     TICK_CYCLES to twice that and a turn over all lines. With a message's first packet `missed` tells how many before it were never seen.
//   * What comes again of a message that has ended, or is not newer, is STALE. Numbers are compared modulo 2^16: of more than 32,767 lost in a row nothing is said.
//   * The events' reader has room for two (event_room) when one is looked for.
module rdma_messages #(
    parameter int X_BITS = 3,           // nodes that may send: this many bits of each coordinate
    parameter int Y_BITS = 3,
    parameter int Z_BITS = 3,
    parameter int GETS = 8,             // of ours under way; a power of two
    parameter int TICK_CYCLES = 262144,
    parameter int TURN_CYCLES = 32      // from one line that is looked at for a time-out to the next, at least
) (
    input logic clk,
    input logic rst,

    input  logic                            look_soon,     // look_valid may be up in the next cycle: no turn begins, so the packet need not wait for it
    input  logic                            look_valid,
    output logic                            look_ready,
    input  logic [                     4:0] look_kind,
    input  apenet_pkg::place_t              look_source,
    input  logic [                    15:0] look_number,
    input  logic [                     7:0] look_packet,
    input  logic [                     7:0] look_last,
    input  logic [                    15:0] look_process,
    input  logic [                    15:0] look_value,
    input  logic [rdma_pkg::BYTES_BITS-1:0] look_bytes,
    output logic                            verdict_valid,
    output rdma_pkg::verdict_t              verdict,
    input  logic                            land,
    input  logic                            leave,

    // A GET of ours: its number comes with open_ready.
    input  logic               open_valid,
    output logic               open_ready,
    output logic               open_room,     // a line is free
    input  apenet_pkg::place_t open_to,
    input  logic [       15:0] open_process,
    input  logic [       63:0] open_tag,
    output logic [       15:0] open_number,

    output logic             event_valid,
    output rdma_pkg::event_t event_,
    input  logic             event_room,
    input  logic             event_full,

    output logic [15:0] missed  // messages of which nothing was seen
);
  localparam int SOURCE_BITS = X_BITS + Y_BITS + Z_BITS;
  localparam int GET_BITS = $clog2(GETS);
  localparam int LINE_BITS = (SOURCE_BITS > GET_BITS ? SOURCE_BITS : GET_BITS) + 1;  // of a line's place: GETs have the upper half
  localparam int LINES = 2 ** SOURCE_BITS + GETS;
  localparam int STAMP_BITS = 3;
  localparam int TURN_BITS = $clog2(TURN_CYCLES);

  if (X_BITS < 1 || X_BITS > 6 || Y_BITS < 1 || Y_BITS > 5 || Z_BITS < 1 || Z_BITS > 5 || GETS < 2 || GETS != 2 ** GET_BITS) begin : g_check
    $fatal(1, "X_BITS must be 1 to 6, Y_BITS and Z_BITS 1 to 5, GETS a power of two from 2 (instance %m)");
  end
  if (2 ** TURN_BITS != TURN_CYCLES || TICK_CYCLES < LINES * 2 * TURN_CYCLES) begin : g_check_time
    $fatal(1, "TURN_CYCLES must be a power of two, TICK_CYCLES must be two turns over all lines or more (instance %m)");
  end

  typedef struct packed {
    logic                            known;    // a message has been seen
    logic                            open;
    logic                            began;    // a packet has landed
    apenet_pkg::place_t              source;
    logic [15:0]                     number;
    logic [15:0]                     process;
    logic [7:0]                      last;
    logic [7:0]                      left;     // packets, less 1
    logic [rdma_pkg::PACKETS_MAX-1:0] landed;
    logic [rdma_pkg::BYTES_BITS-1:0] bytes;
    logic [STAMP_BITS-1:0]           stamp;
  } line_t;
  typedef enum logic [2:0] {CLEAR, IDLE, JUDGE, HOLD, LAND, TURN} state_t;

  line_t lines[2**LINE_BITS];
  line_t line, changed;
  state_t state;
  logic [LINE_BITS-1:0] at;  // of `line`
  logic [63:0] tags[GETS];

  // --- the packet that is looked for ---
  typedef struct packed {
    logic [4:0]                      kind;
    apenet_pkg::place_t              source;
    logic [15:0]                     number;
    logic [7:0]                      packet;
    logic [7:0]                      last;
    logic [15:0]                     process;
    logic [15:0]                     value;
    logic [rdma_pkg::BYTES_BITS-1:0] bytes;
  } look_t;
  look_t look;
  logic fresh;            // it begins its message
  logic [15:0] skipped;   // messages before it
  logic full;
  wire is_reply = look.kind == rdma_pkg::TYPE_REPLY;
  wire [SOURCE_BITS-1:0] source_line = {look_source.z[Z_BITS-1:0], look_source.y[Y_BITS-1:0], look_source.x[X_BITS-1:0]};
  wire [GET_BITS-1:0] get_line = look_number[GET_BITS-1:0];
  wire [LINE_BITS-1:0] look_at = look_kind == rdma_pkg::TYPE_REPLY ? {1'b1, (LINE_BITS - 1)'(get_line)} : {1'b0, (LINE_BITS - 1)'(source_line)};
  wire outside = (look.source.z >> Z_BITS) != '0 || (look.source.y >> Y_BITS) != '0 || (look.source.x >> X_BITS) != '0;

  // --- turns over all lines, for time-outs ---
  logic [LINE_BITS-1:0] turn_at;
  logic [TURN_BITS-1:0] since_turn;
  logic turn_due, turn_late;
  logic [$clog2(TICK_CYCLES)-1:0] tick_cycles;
  logic [STAMP_BITS-1:0] now;
  wire takes_turn = state == IDLE && turn_due && event_room && (turn_late || !(look_valid || look_soon));
  always_ff @(posedge clk) begin
    since_turn <= since_turn + 1'b1;
    if (since_turn == '1) turn_due <= 1'b1;
    if (since_turn == '1 && turn_due) turn_late <= 1'b1;
    if (takes_turn) {turn_due, turn_late} <= '0;
    tick_cycles <= tick_cycles + 1'b1;
    if (tick_cycles == $bits(tick_cycles)'(TICK_CYCLES - 1)) begin
      tick_cycles <= '0;
      now <= now + 1'b1;
    end
    if (rst) begin
      since_turn <= '0;
      {turn_due, turn_late} <= '0;
      tick_cycles <= '0;
      now <= '0;
    end
  end

  // --- GETs: a free line, with a number that it has not had for long ---
  logic [GETS-1:0] taken;
  logic [15-GET_BITS:0] next_get;
  logic [GET_BITS-1:0] free;
  always_comb begin
    free = '0;
    for (int g = 0; g < GETS; g++) if (!taken[g]) free = GET_BITS'(g);
  end
  assign open_number = {next_get, free};
  logic open_next;  // after a packet that was looked for
  assign open_ready = state == IDLE && !takes_turn && open_room && (!look_valid || open_next);

  // --- what it finds ---
  wire [15:0] ahead = look.number - line.number;
  wire newer = !line.known || (ahead != '0 && !ahead[15]);
  wire begins = is_reply ? !line.began : newer;  // it is the first of its message
  wire its_own = line.open && ahead == '0 && line.source == look.source;
  wire fits = look.packet <= look.last && look.last < 8'(rdma_pkg::PACKETS_MAX) && (begins || look.last == line.last);
  wire expired = line.open && line.stamp - now != '0 && line.stamp - now != '1;
  rdma_pkg::verdict_t found;
  always_comb begin
    found = rdma_pkg::LANDS;
    if (full) found = rdma_pkg::NO_QUEUE;
    else if (!is_reply && outside) found = rdma_pkg::OUTSIDE;
    else if (!its_own && (is_reply || !newer)) found = rdma_pkg::STALE;
    else if (!fits) found = rdma_pkg::MISFIT;
    else if (!begins && line.landed[look.packet[5:0]]) found = rdma_pkg::DUPLICATE;
  end

  // --- a packet lands ---
  wire is_last = (fresh ? look.last : line.left) == '0;
  always_comb begin
    changed = line;
    changed.known = 1'b1;
    changed.began = 1'b1;
    changed.source = look.source;
    changed.number = look.number;
    changed.process = look.process;
    changed.last = look.last;
    changed.left = (fresh ? look.last : line.left) - 1'b1;
    changed.landed = (fresh ? '0 : line.landed) | rdma_pkg::PACKETS_MAX'(1) << look.packet[5:0];
    changed.bytes = (fresh ? '0 : line.bytes) + look.bytes;
    changed.stamp = now;
    changed.open = !is_last;
    if (state == TURN) begin
      changed = line;
      changed.open = 1'b0;
    end
    if (state == CLEAR) begin
      changed = '0;
      changed.number = '1;  // the one before a node's first
    end
    if (state == IDLE) changed = '{1'b1, 1'b1, 1'b0, open_to, open_number, open_process, 8'd0, 8'd0, '0, '0, now};
  end
  wire opens = open_valid && open_ready;
  wire ends_get = (state == LAND && is_last) || (state == TURN && expired);
  wire [LINE_BITS-1:0] write_at = state == IDLE ? {1'b1, (LINE_BITS - 1)'(free)} : at;
  wire writes = state == CLEAR || opens || state == LAND || (state == TURN && expired);
  wire [LINE_BITS-1:0] read_at = takes_turn ? turn_at : look_at;

  assign look_ready = state == IDLE && !takes_turn && (event_room || event_full) && !(open_valid && open_room && open_next);
  wire looks = look_valid && look_ready;
  always_ff @(posedge clk) begin
    if (writes) lines[write_at] <= changed;
    if (state == IDLE) line <= lines[read_at];
    if (opens) tags[free] <= open_tag;
    event_valid <= 1'b0;
    event_.kind <= is_reply ? rdma_pkg::TYPE_GET : look.kind;
    event_.source <= line.source;
    event_.number <= line.number;
    event_.process <= line.process;
    event_.value <= '0;
    event_.bytes <= line.bytes;
    event_.tag <= at[LINE_BITS-1] ? tags[at[GET_BITS-1:0]] : '0;
    event_.failed <= 1'b1;
    event_.timed_out <= 1'b0;
    missed <= '0;
    verdict_valid <= state == JUDGE;
    case (state)
      CLEAR: begin
        at <= at + 1'b1;
        if (at == '1) state <= IDLE;
      end
      IDLE: begin
        at <= takes_turn ? turn_at : look_at;
        look <= '{look_kind, look_source, look_number, look_packet, look_last, look_process, look_value, look_bytes};
        full <= !event_room;
        if (takes_turn) state <= TURN;
        else if (looks) state <= JUDGE;
      end
      JUDGE: begin
        verdict <= found;
        fresh <= begins;
        skipped <= ahead - 1'b1;
        state <= found == rdma_pkg::LANDS ? HOLD : IDLE;
      end
      HOLD: begin
        if (leave) state <= IDLE;
        if (land) begin
          state <= LAND;
          if (!is_reply && fresh) begin
            missed <= skipped;
            event_valid <= line.open;  // what it lacks is lost
            event_.kind <= rdma_pkg::TYPE_PUT;
          end
        end
      end
      LAND: begin
        state <= IDLE;
        event_valid <= is_last && look.kind != rdma_pkg::TYPE_SEND;  // of that its CLOP tells
        event_.source <= look.source;
        event_.number <= look.number;
        event_.process <= look.process;
        event_.value <= look.value;
        event_.bytes <= changed.bytes;
        event_.failed <= 1'b0;
      end
      default: begin  // TURN
        state <= IDLE;
        event_valid <= expired;
        event_.kind <= at[LINE_BITS-1] ? rdma_pkg::TYPE_GET : rdma_pkg::TYPE_PUT;
        event_.timed_out <= 1'b1;
        turn_at <= turn_at + 1'b1;
      end
    endcase
    if (opens) taken[free] <= 1'b1;
    if (opens) next_get <= next_get + 1'b1;
    if (looks || opens) open_next <= looks;
    if (ends_get && at[LINE_BITS-1]) taken[at[GET_BITS-1:0]] <= 1'b0;
    open_room <= taken != '1 && !opens;
    if (rst) begin
      state <= CLEAR;
      at <= '0;
      turn_at <= '0;
      taken <= '0;
      next_get <= '0;
      open_room <= 1'b0;
      open_next <= 1'b0;
      verdict_valid <= 1'b0;
      event_valid <= 1'b0;
      missed <= '0;
    end
  end

  // --- what must hold ---
  always_ff @(posedge clk) begin
    if (!rst) begin
      assert (!(land || leave) || state == HOLD);
      assert (!(land && leave));
    end
  end
endmodule
