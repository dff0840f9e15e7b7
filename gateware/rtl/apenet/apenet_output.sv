// SPDX-License-Identifier: Apache-2.0
// An output of the router: takes a packet at a time from the inputs that ask for it, when what comes after it has room for all of the packet.
//
// Contract
//   * asks[2 * i + vc]: input i has a packet for this output and that virtual channel, of `words` of payload; `free`: it can begin with the next word.
//   * space_0, space_1: how many words there is room for, less those that left on m_axis, as apelink tells them. All ones: for whatever comes.
//   * Between packets no cycle is lost, of whatever input they are.
//   * Who asks is served when apenet_turn says so. Inputs that do not go STRAIGHT on enter a ring here: such a packet is held until as many as `gives_way` says (2
//     to 15, or 0: it is not) went straight on, of either channel, since the last one that was held has entered; unless none of its channel asks. All that
//     enter are of one channel, that of the link: so none is held by what is not in the ring.
//   * Of two channels that both could go one after the other, but not one that is held before one that is not. One that has no room is not passed
//     by another of its virtual channel, else a long one might never have room.
module apenet_output #(
    parameter int INPUTS = 18,
    parameter logic [INPUTS-1:0] LOCAL = '0,    // inputs of local ports
    parameter logic [INPUTS-1:0] STRAIGHT = '0  // inputs that are in the ring already
) (
    input logic clk,
    input logic rst,

    input  logic [  2*INPUTS-1:0] asks,
    input  logic [  9*INPUTS-1:0] words,
    input  logic [  4*INPUTS-1:0] gives_way,
    input  logic [    INPUTS-1:0] free,
    output logic [    INPUTS-1:0] granted,
    input  logic [128*INPUTS-1:0] s_data,
    input  logic [    INPUTS-1:0] s_valid,
    input  logic [    INPUTS-1:0] s_last,
    input  logic [    INPUTS-1:0] s_payload,
    output logic [    INPUTS-1:0] taken,

    input apenet_pkg::counts_t space_0,
    input apenet_pkg::counts_t space_1,

    output logic [127:0] m_axis_tdata,
    output logic         m_axis_tvalid,
    input  logic         m_axis_tready,
    output logic         m_axis_tlast
);
  localparam int COUNT_BITS = apenet_pkg::COUNT_BITS;
  typedef logic [COUNT_BITS:0] room_t;  // below zero with its highest bit

  logic [INPUTS-1:0] holder;  // whose packet is on its way out
  logic vc;                   // on which channel
  logic began;                // in the last cycle
  logic [8:0] began_words;
  logic served;               // the channel of the last packet

  // --- who that enters has to give way ---
  logic [3:0] went_on;  // packets that went straight on since one entered that was held, and more
  logic [INPUTS-1:0] long, held;
  for (genvar i = 0; i < INPUTS; i++) begin : g_held
    assign long[i] = !STRAIGHT[i] && gives_way[4*i+:4] != '0;
    assign held[i] = long[i] && went_on < gives_way[4*i+:4];
  end
  always_ff @(posedge clk) begin
    if ((granted & long) != '0) went_on <= '0;
    else if ((granted & STRAIGHT) != '0 && went_on != '1) went_on <= went_on + 1'b1;
    if (rst) went_on <= '0;
  end

  // --- who is next, on each channel, and whether it has room ---
  logic [1:0] able, grants, yields;
  logic [1:0][INPUTS-1:0] pick;
  logic [1:0][8:0] pick_words;
  logic m_vc, m_payload;
  wire leaves = m_axis_tvalid && m_axis_tready;
  for (genvar v = 0; v < 2; v++) begin : g_vc
    wire [INPUTS-1:0] asks_this;
    for (genvar i = 0; i < INPUTS; i++) begin : g_input
      assign asks_this[i] = asks[2*i+v];
    end
    apenet_turn #(
        .INPUTS(INPUTS),
        .LOCAL(LOCAL),
        .STRAIGHT(STRAIGHT)
    ) i_turn (
        .clk,
        .rst,
        .asks(asks_this),
        .held,
        .granted(grants[v]),
        .pick(pick[v]),
        .yields(yields[v])
    );
    always_comb begin
      pick_words[v] = '0;
      for (int i = 0; i < INPUTS; i++) pick_words[v] |= words[9*i+:9] & {9{pick[v][i]}};
    end

    // Of a packet that was granted all words have their place, whether they have left or not.
    apenet_pkg::counts_t space;
    assign space = v == 0 ? space_0 : space_1;
    room_t data_room, data_reserved;
    logic header_room;
    logic [3:0] headers_reserved;
    wire begins = began && vc == 1'(v);
    wire room_t data_begun = begins ? room_t'(began_words) : '0;
    wire [3:0] headers_begun = begins ? 4'd2 : 4'd0;
    wire leaves_this = leaves && m_vc == 1'(v);
    always_ff @(posedge clk) begin
      data_room <= room_t'(space.data) - data_reserved - data_begun;
      data_reserved <= data_reserved + data_begun - room_t'(leaves_this && m_payload);
      header_room <= room_t'(space.headers) >= room_t'(headers_reserved) + room_t'(headers_begun) + room_t'(2);
      headers_reserved <= headers_reserved + headers_begun - 4'(leaves_this && !m_payload);
      if (rst) begin
        data_room <= '0;
        data_reserved <= '0;
        header_room <= 1'b0;
        headers_reserved <= '0;
      end
    end
    wire fits = header_room && !data_room[COUNT_BITS] && data_room[COUNT_BITS-1:0] >= COUNT_BITS'(pick_words[v]);
    assign able[v] = fits && (pick[v] & free) != '0;
  end

  // --- the packet that leaves ---
  logic ready;
  logic [127:0] data;
  wire moves = ready && (holder & s_valid) != '0;
  wire last = (holder & s_last) != '0;
  wire payload = (holder & s_payload) != '0;
  wire opens = holder == '0 || (moves && last);
  wire first_1 = yields[0] != yields[1] ? yields[0] : !served;
  wire next_vc = able[1] && (!able[0] || first_1);
  assign grants = {opens && able[1] && next_vc, opens && able[0] && !next_vc};
  assign granted = (pick[0] & {INPUTS{grants[0]}}) | (pick[1] & {INPUTS{grants[1]}});
  assign taken = holder & {INPUTS{ready}};
  always_comb begin
    data = '0;
    for (int i = 0; i < INPUTS; i++) data |= s_data[128*i+:128] & {128{holder[i]}};
  end
  always_ff @(posedge clk) begin
    if (opens) begin
      holder <= granted;
      vc <= next_vc;
      began_words <= next_vc ? pick_words[1] : pick_words[0];
    end
    began <= grants != '0 && !rst;
    if (grants != '0) served <= next_vc;
    if (rst) holder <= '0;
    if (rst) served <= 1'b0;
  end

  skid #(
      .DATA_BITS(131)
  ) i_skid (
      .clk,
      .rst,
      .s_data({payload, vc, last, data}),
      .s_valid(moves),
      .s_ready(ready),
      .m_data({m_payload, m_vc, m_axis_tlast, m_axis_tdata}),
      .m_valid(m_axis_tvalid),
      .m_ready(m_axis_tready)
  );

  // --- what must hold ---
  always_ff @(posedge clk) begin
    if (!rst) begin
      assert ($onehot0(granted));
      assert ($onehot0(holder));
      assert (!began || !(moves && last));  // a packet has two words or more: what it needs is counted before the next is granted
    end
  end
endmodule
