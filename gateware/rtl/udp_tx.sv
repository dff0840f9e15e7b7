// SPDX-License-Identifier: Apache-2.0
// UDP encapsulation: a payload and the number of its destination in, an Ethernet frame without check sequence out.
//
// Contract
//   * s_meta_* comes once a packet, any time ahead of its payload; the next packet's is taken while this one is sent.
//   * Output begins when header and first payload word are there, and then has no gap unless s_axis or m_axis_tready makes one. A MAC that
//     cannot wait needs the whole payload behind s_axis.
//   * A payload that is not as long as announced, or longer than PAYLOAD_BYTES_MAX, ends with m_axis_tuser (drop_length). One to a
//     destination that is not enabled is swallowed (drop_destination). Every packet gives one pulse of one counter.
//   * The UDP checksum is zero, that is none: the header leaves before the payload is known. The frame's check sequence guards both.
//   * m_axis_tready reaches s_axis_tready without a register.
module udp_tx #(
    parameter int DESTINATIONS = 16,
    parameter int PAYLOAD_BYTES_MAX = 8972
) (
    input logic clk,
    input logic rst,

    // Addresses and ports are as one writes them: the first byte is the highest.
    input logic [                    47:0] local_mac,
    input logic [                    31:0] local_address,
    input logic                            table_write,
    input logic [$clog2(DESTINATIONS)-1:0] table_index,
    input logic                            table_enable,
    input logic [                    47:0] table_mac,
    input logic [                    31:0] table_address,
    input logic [                    15:0] table_port,
    input logic [                    15:0] table_source_port,

    input  logic                            s_meta_tvalid,
    output logic                            s_meta_tready,
    input  logic [$clog2(DESTINATIONS)-1:0] s_meta_destination,
    input  logic [                    15:0] s_meta_payload_bytes,

    input  logic [63:0] s_axis_tdata,
    input  logic [ 7:0] s_axis_tkeep,
    input  logic        s_axis_tvalid,
    output logic        s_axis_tready,
    input  logic        s_axis_tlast,
    input  logic        s_axis_tuser,   // with tlast: take the packet back

    output logic [63:0] m_axis_tdata,
    output logic [ 7:0] m_axis_tkeep,
    output logic        m_axis_tvalid,
    input  logic        m_axis_tready,
    output logic        m_axis_tlast,
    output logic        m_axis_tuser,

    output logic count_good,
    output logic drop_length,
    output logic drop_destination,
    output logic drop_aborted       // s_axis_tuser
);
  localparam int HEADERS_BYTES = nanet_pkg::IPV4_HEADER_BYTES + nanet_pkg::UDP_HEADER_BYTES;
  localparam int ENTRY_BITS = 48 + 32 + 16 + 16;
  localparam logic [15:0] IPV4_FIRST = 16'h4500;     // version 4, header of 20 bytes
  localparam logic [15:0] IPV4_FLAGS = 16'h4000;     // do not fragment, so the identification may be zero
  localparam logic [15:0] IPV4_TTL_UDP = {8'd64, nanet_pkg::IP_PROTOCOL_UDP};
  localparam logic [15:0] ETHERTYPE_IPV4 = {nanet_pkg::ETHERTYPE_IPV4[7:0], nanet_pkg::ETHERTYPE_IPV4[15:8]};

  if (DESTINATIONS < 2 || DESTINATIONS > 4096) begin : g_check_destinations
    $fatal(1, "DESTINATIONS must be 2 to 4096 (instance %m)");
  end
  if (PAYLOAD_BYTES_MAX < 1 || PAYLOAD_BYTES_MAX > 65507) begin : g_check_payload
    $fatal(1, "PAYLOAD_BYTES_MAX must be 1 to 65507 (instance %m)");
  end

  // --- header, ahead of its payload: entry, sum of the halves, checksum ---
  typedef struct packed {
    logic [47:0] mac;
    logic [31:0] address;
    logic [15:0] port;
    logic [15:0] source_port;
  } entry_t;

  logic [ENTRY_BITS-1:0] entries[DESTINATIONS];
  logic [DESTINATIONS-1:0] enabled;
  entry_t entry;
  logic entry_enabled;
  logic [2:0] steps;  // one bit travels with a header in preparation
  logic prepared, begins;
  logic [15:0] payload_bytes, ip_bytes, checksum;
  logic [19:0] local_sum, sum;
  logic [16:0] entry_sum;
  wire [16:0] sum_once = 17'(sum[15:0]) + 17'(sum[19:16]);
  assign s_meta_tready = steps == '0 && !prepared;

  always_ff @(posedge clk) begin
    if (table_write) entries[table_index] <= {table_mac, table_address, table_port, table_source_port};
    if (s_meta_tvalid && s_meta_tready) entry <= entries[s_meta_destination];
  end

  always_ff @(posedge clk) begin
    if (table_write) enabled[table_index] <= table_enable;
    if (s_meta_tvalid && s_meta_tready) begin
      entry_enabled <= enabled[s_meta_destination];
      payload_bytes <= s_meta_payload_bytes;
    end
    ip_bytes <= payload_bytes + 16'(HEADERS_BYTES);
    local_sum <= 20'(IPV4_FIRST) + 20'(IPV4_FLAGS) + 20'(IPV4_TTL_UDP) + 20'(local_address[31:16]) + 20'(local_address[15:0]);
    entry_sum <= 17'(entry.address[31:16]) + 17'(entry.address[15:0]);
    sum <= local_sum + 20'(entry_sum) + 20'(ip_bytes);
    checksum <= ~(sum_once[15:0] + 16'(sum_once[16]));
    steps <= {steps[1:0], s_meta_tvalid && s_meta_tready};
    prepared <= steps[2] || (prepared && !begins);
    if (rst) begin
      steps <= '0;
      prepared <= 1'b0;
      enabled <= '0;
    end
  end

  // The first 40 bytes of the frame, the first one highest; the last two of its headers are the UDP checksum.
  wire [319:0] header = {
    entry.mac, local_mac, ETHERTYPE_IPV4, IPV4_FIRST, ip_bytes, 16'b0, IPV4_FLAGS, IPV4_TTL_UDP, checksum, local_address, entry.address,
    entry.source_port, entry.port, 16'(payload_bytes + 16'(nanet_pkg::UDP_HEADER_BYTES))
  };

  function automatic logic [63:0] lanes(input logic [63:0] high_first);
    for (int lane = 0; lane < 8; lane++) lanes[8*lane+:8] = high_first[8*(7-lane)+:8];
  endfunction

  // --- frame: five words of headers, then the payload two lanes further on ---
  typedef enum logic [2:0] {
    IDLE,
    HEADER,
    PAYLOAD,
    REST,    // bytes of the last payload word that found no room
    DRAIN    // the payload of a packet that is not sent
  } state_t;

  state_t state;
  logic [255:0] header_left;
  logic [1:0] header_words;  // still to go, less one
  logic [15:0] carry;
  logic [16:0] left_bytes;  // of the announced ones, from the next word on; below zero it stays so
  logic [7:0] last_keep;    // of the next word if it must be the last, else none
  logic too_long;
  logic [7:0] rest_keep;
  logic rest_user;
  wire can_load = !m_axis_tvalid || m_axis_tready;
  wire takes = s_axis_tvalid && s_axis_tready;
  wire spills = s_axis_tkeep[7:6] != '0;
  assign begins = state == IDLE && prepared && s_axis_tvalid && can_load;
  assign s_axis_tready = (state == PAYLOAD && can_load) || state == DRAIN;

  function automatic logic [7:0] keep_if_last(input logic [16:0] bytes);
    keep_if_last = bytes[16:4] != '0 ? '0 : bytes[3] ? {8{bytes[2:0] == '0}} : ~(8'hFF << bytes[2:0]);
  endfunction

  wire [16:0] left_next = left_bytes - 17'd8;
  wire wrong_length = s_axis_tkeep != last_keep || too_long;

  always_ff @(posedge clk) begin
    if (can_load) begin
      m_axis_tvalid <= 1'b0;
      m_axis_tkeep <= '1;
      m_axis_tlast <= 1'b0;
      m_axis_tuser <= 1'b0;
    end
    case (state)
      IDLE: begin
        carry <= '0;
        header_words <= '1;
        if (begins) begin
          left_bytes <= {1'b0, payload_bytes};
          too_long <= int'(payload_bytes) > PAYLOAD_BYTES_MAX;
          header_left <= header[255:0];
          m_axis_tdata <= lanes(header[319:256]);
          m_axis_tvalid <= entry_enabled;
          state <= entry_enabled ? HEADER : DRAIN;
        end
      end
      HEADER: begin
        last_keep <= keep_if_last(left_bytes);
        if (can_load) begin
          m_axis_tdata <= lanes(header_left[255:192]);
          m_axis_tvalid <= 1'b1;
          header_left <= header_left << 64;
          header_words <= header_words - 1'b1;
          if (header_words == '0) state <= PAYLOAD;
        end
      end
      PAYLOAD:
      if (takes) begin
        m_axis_tdata <= {s_axis_tdata[47:0], carry};
        m_axis_tvalid <= 1'b1;
        carry <= s_axis_tdata[63:48];
        if (!left_bytes[16]) left_bytes <= left_next;
        last_keep <= left_bytes[16] ? '0 : keep_if_last(left_next);
        rest_keep <= {6'b0, s_axis_tkeep[7:6]};
        rest_user <= wrong_length || s_axis_tuser;
        if (s_axis_tlast) begin
          state <= spills ? REST : IDLE;
          if (!spills) begin
            m_axis_tkeep <= {s_axis_tkeep[5:0], 2'b11};
            m_axis_tlast <= 1'b1;
            m_axis_tuser <= wrong_length || s_axis_tuser;
          end
        end
      end
      REST:
      if (can_load) begin
        m_axis_tdata <= {48'b0, carry};
        m_axis_tvalid <= 1'b1;
        m_axis_tkeep <= rest_keep;
        m_axis_tlast <= 1'b1;
        m_axis_tuser <= rest_user;
        state <= IDLE;
      end
      DRAIN: if (takes && s_axis_tlast) state <= IDLE;
      default: state <= IDLE;
    endcase
    if (rst) begin
      state <= IDLE;
      m_axis_tvalid <= 1'b0;
    end
  end

  wire ends = takes && s_axis_tlast && !rst;
  always_ff @(posedge clk) begin
    count_good <= ends && state == PAYLOAD && !wrong_length && !s_axis_tuser;
    drop_length <= ends && state == PAYLOAD && wrong_length && !s_axis_tuser;
    drop_aborted <= ends && state == PAYLOAD && s_axis_tuser;
    drop_destination <= ends && state == DRAIN;
  end

  // --- what must hold ---
  logic waits;
  logic [73:0] waiting;
  always_ff @(posedge clk) begin
    waits <= !rst && m_axis_tvalid && !m_axis_tready;
    waiting <= {m_axis_tdata, m_axis_tkeep, m_axis_tlast, m_axis_tuser};
    if (!rst) begin
      assert (!waits || (m_axis_tvalid && waiting == {m_axis_tdata, m_axis_tkeep, m_axis_tlast, m_axis_tuser}));
      assert (!takes || s_axis_tlast || s_axis_tkeep == '1);
      assert (!m_axis_tvalid || m_axis_tlast || m_axis_tkeep == '1);
      assert ($onehot0({count_good, drop_length, drop_aborted, drop_destination}));
      assert (!begins || steps == '0);
    end
  end
endmodule
