// SPDX-License-Identifier: Apache-2.0
// Which event is next: the earliest of those that stand at the heads of several links, and what may not be sent any more.
//
// Terms
//   key       time of an event; it wraps, and a key is before another if it is less than half the circle behind it.
//   horizon   key of the event sent last. What is not after it is late: to send it would break the order. There is none after reset and `forget`.
//   far       more than cfg_jump after the horizon: a clock may be wrong. It is if another link has a head that is not (stray); and if all heads are far, the
//             earliest may be wrong if only one link has it (jumps).
//
// Contract
//   * Every cycle: the answer to the heads of one cycle stands LATENCY_CYCLES later. key is read at the heads then: it is right if those that are earliest still
//     stand there. So is what `sent` makes the horizon.
//   * `sent`, with an answer, makes its key the horizon. Answers to heads of that cycle and before do not know of it. `forget` wins over `sent`.
module event_select #(
    parameter int LINKS = 4,
    parameter int KEY_BITS = 40
) (
    input logic clk,
    input logic rst,

    input logic [         LINKS-1:0] head_valid,
    input logic [LINKS*KEY_BITS-1:0] head_key,
    input logic [      KEY_BITS-1:0] cfg_jump,
    input logic                      sent,
    input logic                      forget,

    output logic [   LINKS-1:0] late,
    output logic [   LINKS-1:0] stray,
    output logic [   LINKS-1:0] earliest,  // all links with the earliest key that is not late
    output logic [KEY_BITS-1:0] key,       // that one
    output logic                jumps
);
  localparam int LATENCY_CYCLES = 2;
  localparam logic [KEY_BITS-1:0] HALF = {1'b1, {KEY_BITS - 1{1'b0}}};

  if (LINKS < 2 || LINKS > 8) begin : g_check
    $fatal(1, "LINKS must be 2 to 8 (instance %m)");
  end

  // Without a horizon, order is that around the first head that there is.
  logic [KEY_BITS-1:0] horizon, origin_next;
  logic horizon_valid;
  always_comb begin
    origin_next = horizon;
    for (int link = LINKS - 1; link >= 0; link--) begin
      if (!horizon_valid && head_valid[link]) origin_next = head_key[KEY_BITS*link+:KEY_BITS] ^ HALF;
    end
  end

  // --- cycle 1: how far each head is from the origin ---
  logic [LINKS*KEY_BITS-1:0] distance;
  logic [LINKS-1:0] valid;
  logic has_horizon;
  always_ff @(posedge clk) begin
    for (int link = 0; link < LINKS; link++) distance[KEY_BITS*link+:KEY_BITS] <= head_key[KEY_BITS*link+:KEY_BITS] - origin_next;
    valid <= head_valid;
    has_horizon <= horizon_valid;
  end

  // --- cycle 2: each with each ---
  logic [LINKS-1:0] behind, far, first, alone;  // alone: first, and no other is
  for (genvar link = 0; link < LINKS; link++) begin : g_link
    wire [KEY_BITS-1:0] own = distance[KEY_BITS*link+:KEY_BITS];
    wire [LINKS-1:0] earlier, later;
    assign behind[link] = valid[link] && has_horizon && (own == '0 || own[KEY_BITS-1]);
    assign far[link] = valid[link] && has_horizon && !behind[link] && own > cfg_jump;
    assign first[link] = valid[link] && !behind[link] && earlier == '0;
    assign alone[link] = valid[link] && !behind[link] && later == '1;
    for (genvar other = 0; other < LINKS; other++) begin : g_other
      wire counts = valid[other] && !behind[other];
      assign earlier[other] = counts && distance[KEY_BITS*other+:KEY_BITS] < own;
      assign later[other] = other == link || !counts || own < distance[KEY_BITS*other+:KEY_BITS];
    end
  end
  wire some_near = (valid & ~behind & ~far) != '0;

  logic [LINKS-1:0] alone_far;
  always_comb begin
    key = '0;
    for (int link = 0; link < LINKS; link++) if (earliest[link]) key |= head_key[KEY_BITS*link+:KEY_BITS];  // all the same
  end
  assign jumps = alone_far != '0;

  always_ff @(posedge clk) begin
    late <= behind;
    stray <= some_near ? far : '0;
    earliest <= first;
    alone_far <= alone & far;
    if (sent) begin
      horizon <= key;
      horizon_valid <= 1'b1;
    end
    if (forget || rst) horizon_valid <= 1'b0;
  end

  // --- what must hold ---
  logic [LINKS-1:0] had_heads[LATENCY_CYCLES];
  logic [LATENCY_CYCLES-1:0] runs;  // the answer is to heads of after the reset
  always_ff @(posedge clk) begin
    runs <= rst ? '0 : {runs[LATENCY_CYCLES-2:0], 1'b1};
    had_heads[0] <= head_valid;
    had_heads[1] <= had_heads[0];
    if (!rst) begin
      assert ($onehot0({late[0], stray[0], earliest[0]}));
      assert (stray == '0 || !jumps);
      assert (runs != '1 || ((late | stray | earliest) & ~had_heads[LATENCY_CYCLES-1]) == '0);
    end
  end

`ifdef FORMAL
  // Whatever is sent is after what was sent before; no head that is not late is before it; late is what must not be sent. All of it said once more of
  // the heads themselves.
  logic [LINKS-1:0] valid_1, valid_2;
  logic [LINKS*KEY_BITS-1:0] keys_1, keys_2;
  logic [1:0] knows;  // cycles since something was sent or forgotten: answers before that do not know of it
  logic [KEY_BITS-1:0] origin;
  wire [KEY_BITS-1:0] step = key - horizon;
  wire stands = keys_2 == head_key;
  always_ff @(posedge clk) begin
    origin <= origin_next;
    {valid_2, keys_2, valid_1, keys_1} <= {valid_1, keys_1, head_valid, head_key};
    knows <= rst || sent || forget ? 2'd0 : knows == 2'd2 ? 2'd2 : knows + 2'd1;
    if (!rst) begin
      if (sent) assume (knows == 2'd2 && earliest != '0 && stands);
      if (sent && horizon_valid) assert (step != '0 && !step[KEY_BITS-1]);
      if (knows != 2'd0) assert (has_horizon == horizon_valid && (!horizon_valid || origin == horizon) && valid == valid_1);
    end
  end

  for (genvar link = 0; link < LINKS; link++) begin : g_proof
    wire [KEY_BITS-1:0] own = keys_2[KEY_BITS*link+:KEY_BITS];
    wire [KEY_BITS-1:0] ahead = own - horizon;
    wire [KEY_BITS-1:0] apart = keys_1[KEY_BITS*link+:KEY_BITS] - origin;
    wire [KEY_BITS-1:0] apart_now = distance[KEY_BITS*link+:KEY_BITS];
    always_ff @(posedge clk) begin
      if (!rst) begin
        if (knows != 2'd0) assert (apart_now == apart);
        if (knows == 2'd2) begin
          assert (!earliest[link] || (valid_2[link] && (!stands || own == key)));
          if (horizon_valid) begin
            assert (late[link] == (valid_2[link] && (ahead == '0 || ahead[KEY_BITS-1])));
            if (valid_2[link] && !late[link]) begin
              assert (earliest != '0 && (!stands || ahead >= step));
              assert (!stands || earliest[link] == (own == key));
            end
          end
        end
      end
    end
  end
`endif
endmodule
