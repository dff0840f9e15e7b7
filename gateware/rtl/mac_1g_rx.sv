// SPDX-License-Identifier: Apache-2.0
// 1G Ethernet MAC, receive side: GMII bytes in, frames without preamble and FCS out, a byte a cycle.
//
// Contract
//   * A byte leaves LATENCY_CYCLES after it came in, and none waits: the output cannot be held up. Within a frame there is no gap.
//   * m_axis_tuser with m_axis_tlast says that the frame is bad. One counter gives one pulse for each frame that began.
//   * The preamble may be short, or nothing but its start-of-frame delimiter: a PHY may swallow the rest.
//   * A bad frame whose first five bytes did not come makes no output, only the pulse.
//   * m_meta_start_cycle is now_cycles of the cycle in which the start-of-frame delimiter stood on GMII. It holds from the first byte to the
//     last.
//   * What a reset finds on the wire is not received: a frame begins after a cycle without gmii_rx_dv.
module mac_1g_rx #(
    parameter int FRAME_BYTES_MAX = 9022,  // longest good frame, FCS and tag included [B]
    parameter bit NOW_LATE = 1'b0          // now_cycles is as late as a start is seen here
) (
    input logic clk,  // that of GMII, 125 MHz
    input logic rst,

    input logic [63:0] now_cycles,
    input logic [ 7:0] gmii_rxd,
    input logic        gmii_rx_dv,
    input logic        gmii_rx_er,

    output logic [ 7:0] m_axis_tdata,
    output logic        m_axis_tvalid,
    output logic        m_axis_tlast,
    output logic        m_axis_tuser,
    output logic [63:0] m_meta_start_cycle,

    output logic count_good,
    output logic drop_preamble,  // something else than a preamble, or nothing behind it
    output logic drop_error,     // gmii_rx_er in mid-frame; ends at once
    output logic drop_oversize,  // longer than FRAME_BYTES_MAX; ends at once
    output logic drop_runt,      // shorter than 64 bytes
    output logic drop_fcs        // frame check sequence wrong
);
  localparam int LATENCY_CYCLES = 7;
  localparam int SEEN_CYCLES = 1;  // so long after it stood on GMII a byte is looked at
  localparam int HELD_BYTES = nanet_pkg::ETH_FCS_BYTES + 1;  // the last byte of the frame is known by its end, four bytes later
  localparam int BYTES_BITS = $clog2(FRAME_BYTES_MAX + 2);

  if (FRAME_BYTES_MAX < 1518 || FRAME_BYTES_MAX > 16384) begin : g_check
    $fatal(1, "FRAME_BYTES_MAX must be 1518 to 16384 (instance %m)");
  end

  typedef enum logic [1:0] {
    SKIP,      // what is left of a frame that ended early, or was there at reset
    IDLE,
    PREAMBLE,
    FRAME
  } state_t;

  state_t state;
  logic [7:0] data;
  logic data_valid, error;

  always_ff @(posedge clk) begin
    data <= gmii_rxd;
    data_valid <= gmii_rx_dv;
    error <= gmii_rx_er;
  end

  // --- frame, length, check sequence ---
  logic [8*HELD_BYTES-1:0] held;  // the oldest byte highest
  logic [HELD_BYTES-1:0] held_valid;
  logic [BYTES_BITS-1:0] bytes;  // of this frame before this byte
  logic [31:0] crc, crc_next;
  logic full, long_enough;  // of this frame before this byte: FRAME_BYTES_MAX, and those of the shortest frame
  wire in_frame = state == FRAME;
  wire begins = (state == IDLE || state == PREAMBLE) && data_valid && !error && data == nanet_pkg::ETH_SFD;
  wire in_preamble = (state == IDLE && data_valid) || state == PREAMBLE;
  wire is_preamble = data_valid && (data == nanet_pkg::ETH_PREAMBLE || data == nanet_pkg::ETH_SFD);
  wire fails = data_valid && error;
  wire too_long = data_valid && !error && full;
  wire ends = in_frame && (!data_valid || error || full);

  crc32_byte crc_byte (
      .crc,
      .data,
      .crc_next
  );

  always_ff @(posedge clk) begin
    case (state)
      SKIP: if (!data_valid) state <= IDLE;
      FRAME: if (ends) state <= data_valid ? SKIP : IDLE;
      default:
      if (begins) state <= FRAME;
      else if (!data_valid) state <= IDLE;
      else state <= error || !is_preamble ? SKIP : PREAMBLE;
    endcase
    held <= {held[8*HELD_BYTES-9:0], data};
    held_valid <= in_frame && !ends ? {held_valid[HELD_BYTES-2:0], 1'b1} : '0;
    if (in_frame) begin
      crc <= crc_next;
      bytes <= bytes + 1'b1;
      full <= int'(bytes) == FRAME_BYTES_MAX - 1;
      long_enough <= long_enough || int'(bytes) == nanet_pkg::ETH_FRAME_BYTES_MIN - 1;
    end
    if (begins) begin
      crc <= '1;
      bytes <= '0;
      full <= 1'b0;
      long_enough <= 1'b0;
      m_meta_start_cycle <= NOW_LATE ? now_cycles : now_cycles - 64'(SEEN_CYCLES);
    end
    if (rst) begin
      state <= SKIP;
      held_valid <= '0;
    end
  end

  // --- out: the byte that is five old, as the frame goes on or ends ---
  wire crc_good = crc == crc32_pkg::GOOD;
  wire ends_good = !data_valid && long_enough && crc_good;
  always_ff @(posedge clk) begin
    m_axis_tdata <= held[8*HELD_BYTES-1-:8];
    m_axis_tvalid <= held_valid[HELD_BYTES-1] && !rst;
    m_axis_tlast <= ends;
    m_axis_tuser <= ends && !ends_good;
    count_good <= ends && ends_good && !rst;
    drop_preamble <= in_preamble && !begins && !fails && !is_preamble && !rst;
    drop_error <= (in_preamble || in_frame) && fails && !rst;
    drop_oversize <= in_frame && too_long && !rst;
    drop_runt <= in_frame && !data_valid && !long_enough && !rst;
    drop_fcs <= in_frame && !data_valid && long_enough && !crc_good && !rst;
  end

  // --- what must hold ---
  logic [LATENCY_CYCLES-1:0] begun;
  logic m_inside;
  always_ff @(posedge clk) begin
    begun <= rst ? '0 : {begun[LATENCY_CYCLES-2:0], begins};
    m_inside <= !rst && (m_axis_tvalid ? !m_axis_tlast : m_inside);
    if (!rst) begin
      assert ($onehot0({count_good, drop_preamble, drop_error, drop_oversize, drop_runt, drop_fcs}));
      assert (!m_axis_tvalid || m_inside || begun[LATENCY_CYCLES-1]);
      assert (m_axis_tvalid || !m_inside);
    end
  end
endmodule
