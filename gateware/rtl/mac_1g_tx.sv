// SPDX-License-Identifier: Apache-2.0
// 1G Ethernet MAC, send side: frames without preamble and FCS in, a byte a cycle; GMII bytes out.
//
// Contract
//   * A frame has to come without a gap: when a byte is missing in mid-frame, the frame ends with gmii_tx_er (drop_underrun) and the rest
//     of it is thrown away. s_axis_tuser with s_axis_tlast ends it in the same way (drop_aborted).
//   * Frames under 60 bytes are filled with zeros. The gap between frames is 12 bytes, or more while there is nothing to send.
//   * A byte leaves LATENCY_CYCLES after it was taken. The first byte is taken when the preamble has gone, eight cycles after it was offered.
module mac_1g_tx (
    input logic clk,  // that of GMII, 125 MHz
    input logic rst,

    input  logic [7:0] s_axis_tdata,
    input  logic       s_axis_tvalid,
    output logic       s_axis_tready,
    input  logic       s_axis_tlast,
    input  logic       s_axis_tuser,

    output logic [7:0] gmii_txd,
    output logic       gmii_tx_en,
    output logic       gmii_tx_er,

    output logic count_good,
    output logic drop_underrun,
    output logic drop_aborted
);
  localparam int LATENCY_CYCLES = 1;
  localparam int FILLED_BYTES = nanet_pkg::ETH_FRAME_BYTES_MIN - nanet_pkg::ETH_FCS_BYTES;

  typedef enum logic [2:0] {
    IDLE,
    PREAMBLE,
    DATA,
    PAD,
    FCS,
    DRAIN,  // throws away what is left of a frame that was cut
    GAP
  } state_t;

  state_t state;
  logic [3:0] left;  // cycles of PREAMBLE, FCS and GAP after this one
  logic [5:0] bytes;  // of the frame before this byte, up to FILLED_BYTES - 1
  logic [31:0] crc, crc_next;
  wire takes = state == DATA && s_axis_tvalid;
  wire underrun = state == DATA && !s_axis_tvalid;
  wire aborted = takes && s_axis_tlast && s_axis_tuser;
  wire filled = bytes == 6'(FILLED_BYTES - 1);  // with this byte
  wire [7:0] frame_byte = state == DATA ? s_axis_tdata : '0;
  assign s_axis_tready = state == DATA || state == DRAIN;

  crc32_byte crc_byte (
      .crc,
      .data(frame_byte),
      .crc_next
  );

  always_ff @(posedge clk) begin
    left <= left - 1'b1;
    case (state)
      IDLE: begin
        left <= 4'(nanet_pkg::ETH_PREAMBLE_BYTES - 2);
        if (s_axis_tvalid) state <= PREAMBLE;
      end
      PREAMBLE: if (left == '0) state <= DATA;
      DATA: begin
        left <= 4'(nanet_pkg::ETH_FCS_BYTES - 1);
        if (underrun) state <= DRAIN;
        else if (aborted) state <= GAP;
        else if (s_axis_tlast) state <= filled ? FCS : PAD;
        if (aborted) left <= 4'(nanet_pkg::ETH_GAP_BYTES - 1);
      end
      PAD: begin
        left <= 4'(nanet_pkg::ETH_FCS_BYTES - 1);
        if (filled) state <= FCS;
      end
      FCS:
      if (left == '0) begin
        state <= GAP;
        left <= 4'(nanet_pkg::ETH_GAP_BYTES - 1);
      end
      DRAIN: begin
        left <= 4'(nanet_pkg::ETH_GAP_BYTES - 1);
        if (s_axis_tvalid && s_axis_tlast) state <= GAP;
      end
      default: if (left == '0) state <= IDLE;
    endcase
    if (state == DATA || state == PAD) begin
      crc <= crc_next;
      if (!filled) bytes <= bytes + 1'b1;
    end else if (state == FCS) crc <= {8'hFF, crc[31:8]};
    else begin
      crc <= '1;
      bytes <= '0;
    end
    if (rst) begin
      state <= GAP;
      left <= 4'(nanet_pkg::ETH_GAP_BYTES - 1);
    end
  end

  always_ff @(posedge clk) begin
    gmii_txd <= frame_byte;
    if (state == PREAMBLE) gmii_txd <= left == '0 ? nanet_pkg::ETH_SFD : nanet_pkg::ETH_PREAMBLE;
    if (state == IDLE && s_axis_tvalid) gmii_txd <= nanet_pkg::ETH_PREAMBLE;
    if (state == FCS) gmii_txd <= ~crc[7:0];
    gmii_tx_en <= !rst && ((state == IDLE && s_axis_tvalid) || state == PREAMBLE || state == DATA || state == PAD || state == FCS);
    gmii_tx_er <= !rst && (underrun || aborted);
    count_good <= !rst && state == FCS && left == '0;
    drop_underrun <= !rst && underrun;
    drop_aborted <= !rst && aborted;
  end

  // --- what must hold ---
  logic m_sending, m_preamble, m_first;  // the byte on GMII before this one, whether it left the preamble unfinished, or ended it
  logic [LATENCY_CYCLES-1:0] begun;
  logic [3:0] m_gap;
  wire m_in_preamble = gmii_tx_en && (m_preamble || !m_sending);
  always_ff @(posedge clk) begin
    begun <= rst ? '0 : {state == DATA && bytes == '0};
    m_sending <= !rst && gmii_tx_en;
    m_preamble <= !rst && m_in_preamble && gmii_txd != nanet_pkg::ETH_SFD;
    m_first <= !rst && m_in_preamble && gmii_txd == nanet_pkg::ETH_SFD;
    m_gap <= rst || gmii_tx_en ? '0 : m_gap == '1 ? m_gap : m_gap + 1'b1;
    if (!rst) begin
      assert ($onehot0({count_good, drop_underrun, drop_aborted}));
      assert (!gmii_tx_er || gmii_tx_en);
      assert (!m_first || begun[LATENCY_CYCLES-1]);
      assert (!gmii_tx_en || m_sending || int'(m_gap) >= nanet_pkg::ETH_GAP_BYTES);
    end
  end
endmodule
