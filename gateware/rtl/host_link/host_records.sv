// SPDX-License-Identifier: Apache-2.0
// The NIC's bus as records for a host that is not on it, and the host's records as accesses of the NIC: host_link_pkg says how they look.
//
// Contract
//   * Requests become records in the order in which the NIC gives them, each whole before the next; a rise of irq is one record, after the writes before it.
//   * Records come in as the words of a frame's body, s_last with its last one. Each read of the NIC is answered with exactly its words: an answer that is cut short,
//     or of another size, ends as failed, and one that nobody asked for is thrown away (count_malformed).
//   * A register is written before the next record is looked at. One read of a register at a time: another that comes before its answer has left is left out
//     (count_malformed), so that nothing the host sends ever waits for room in the other direction.
//   * count_refused: a write to no register.
module host_records #(
    parameter int WRITE_REQUEST_BYTES_MAX = 256,
    parameter int READ_REQUEST_BYTES_MAX = 512,
    parameter int READ_TAGS = 4,
    parameter int REGISTER_BITS = 12,
    localparam int TAG_BITS = $clog2(READ_TAGS)
) (
    input logic clk,
    input logic rst,

    // --- the NIC, as of nic ---
    input  logic                                         mem_write_valid,
    output logic                                         mem_write_ready,
    input  logic                                         mem_write_last,
    input  logic [                                 63:0] mem_write_address,
    input  logic [$clog2(WRITE_REQUEST_BYTES_MAX+1)-1:0] mem_write_bytes,
    input  logic [                                127:0] mem_write_data,
    input  logic                                         mem_read_valid,
    output logic                                         mem_read_ready,
    input  logic [                                 63:0] mem_read_address,
    input  logic [ $clog2(READ_REQUEST_BYTES_MAX+1)-1:0] mem_read_bytes,
    input  logic [                         TAG_BITS-1:0] mem_read_tag,
    output logic                                         mem_answer_valid,
    output logic [                         TAG_BITS-1:0] mem_answer_tag,
    output logic [                                127:0] mem_answer_data,
    output logic                                         mem_answer_last,
    output logic                                         mem_answer_error,
    input  logic                                         irq,
    output logic [                    REGISTER_BITS-1:0] m_axil_awaddr,
    output logic                                         m_axil_awvalid,
    input  logic                                         m_axil_awready,
    output logic [                                 63:0] m_axil_wdata,
    output logic                                         m_axil_wvalid,
    input  logic                                         m_axil_wready,
    input  logic [                                  1:0] m_axil_bresp,
    input  logic                                         m_axil_bvalid,
    output logic                                         m_axil_bready,
    output logic [                    REGISTER_BITS-1:0] m_axil_araddr,
    output logic                                         m_axil_arvalid,
    input  logic                                         m_axil_arready,
    input  logic [                                 63:0] m_axil_rdata,
    input  logic [                                  1:0] m_axil_rresp,
    input  logic                                         m_axil_rvalid,
    output logic                                         m_axil_rready,

    // --- records to the host; m_last ends one ---
    output logic [63:0] m_data,
    output logic        m_valid,
    input  logic        m_ready,
    output logic        m_last,

    // --- records from the host; s_last ends a frame ---
    input  logic [63:0] s_data,
    input  logic        s_valid,
    output logic        s_ready,
    input  logic        s_last,

    output logic count_malformed,
    output logic count_refused
);
  localparam int WORDS_BITS = 9;  // of an answer: of 4095 bytes at most

  if (READ_TAGS > 128 || WRITE_REQUEST_BYTES_MAX > 1024 || READ_REQUEST_BYTES_MAX > 2048) begin : g_check
    $fatal(1, "READ_TAGS must be at most 128, a write request 1024 bytes, a read request 2048 (instance %m)");
  end

  // --- to the host ---
  typedef enum logic [1:0] {
    CHOOSE,
    LOW,   // the first half of a word of the bus
    HIGH,
    VALUE  // of a register
  } out_t;
  out_t out;
  logic irq_before, interrupts;  // an interrupt waits
  logic reads, answers;  // a register is read; and its value waits
  logic answer_failed;
  logic [63:0] value;
  logic [REGISTER_BITS-1:0] read_register;
  host_link_pkg::record_t head;
  always_comb begin
    head = '0;
    head.kind = host_link_pkg::NOTHING;
    m_valid = 1'b1;
    m_last = 1'b0;
    mem_read_ready = 1'b0;
    if (answers) begin
      head.kind = host_link_pkg::REGISTER_ANSWER;
      head.failed = answer_failed;
      head.address = 40'(read_register);
    end else if (interrupts) begin
      head.kind = host_link_pkg::INTERRUPT;
    end else if (mem_read_valid) begin
      head.kind = host_link_pkg::READ;
      head.tag = 7'(mem_read_tag);
      head.bytes = 12'(mem_read_bytes);
      head.address = mem_read_address[39:0];
    end else if (mem_write_valid) begin
      head.kind = host_link_pkg::WRITE;
      head.bytes = 12'(mem_write_bytes);
      head.address = mem_write_address[39:0];
    end
    case (out)
      CHOOSE: begin
        m_data = head;
        m_valid = head.kind != host_link_pkg::NOTHING;
        m_last = head.kind == host_link_pkg::INTERRUPT || head.kind == host_link_pkg::READ;
        mem_read_ready = m_ready && head.kind == host_link_pkg::READ;
      end
      LOW: begin
        m_data  = mem_write_data[63:0];
        m_valid = mem_write_valid;
      end
      HIGH: begin
        m_data = mem_write_data[127:64];
        m_last = mem_write_last;
      end
      default: begin
        m_data = value;
        m_last = 1'b1;
      end
    endcase
  end
  wire m_takes = m_valid && m_ready;
  assign mem_write_ready = out == HIGH && m_ready;
  always_ff @(posedge clk) begin
    irq_before <= irq;
    if (m_takes && out == CHOOSE && head.kind == host_link_pkg::INTERRUPT) interrupts <= 1'b0;
    if (irq && !irq_before) interrupts <= 1'b1;
    if (m_takes) begin
      case (out)
        CHOOSE: begin
          if (head.kind == host_link_pkg::WRITE) out <= LOW;
          if (head.kind == host_link_pkg::REGISTER_ANSWER) out <= VALUE;
        end
        LOW: out <= HIGH;
        HIGH: out <= mem_write_last ? CHOOSE : LOW;
        default: out <= CHOOSE;
      endcase
    end
    if (rst) begin
      out <= CHOOSE;
      {irq_before, interrupts} <= '0;
    end
  end

  // --- from the host ---
  typedef enum logic [2:0] {
    HEAD,
    ANSWER_LOW,
    ANSWER_HIGH,
    FILL,      // what an answer lacks
    REGISTER,
    SKIP
  } in_t;
  in_t in;
  host_link_pkg::record_t s_head;
  logic [READ_TAGS-1:0] asked;  // and not answered
  logic [WORDS_BITS-1:0] asked_words[READ_TAGS];
  logic [WORDS_BITS-1:0] left;  // words of the bus of this answer, this one included
  logic [63:0] low;
  logic failed, frame_over, writes, address_taken, data_taken;  // writes: a register is written
  logic [TAG_BITS-1:0] tag;
  assign s_head = s_data;
  wire [TAG_BITS-1:0] s_tag = s_head.tag[TAG_BITS-1:0];
  wire [12:0] s_bytes_up = {1'b0, s_head.bytes} + 13'd15;
  wire [12:0] read_bytes_up = 13'(mem_read_bytes) + 13'd15;
  assign s_ready = !writes && in != FILL;
  wire s_takes = s_valid && s_ready;
  wire begins_answer = in == HEAD && s_head.kind == host_link_pkg::READ_ANSWER && int'(s_head.tag) < READ_TAGS && asked[s_tag];
  wire begins_write = in == HEAD && s_head.kind == host_link_pkg::REGISTER_WRITE;
  wire begins_read = in == HEAD && s_head.kind == host_link_pkg::REGISTER_READ;
  wire as_asked = s_bytes_up[12:4] == asked_words[s_tag];
  wire unknown = s_takes && in == HEAD && s_head.kind != host_link_pkg::NOTHING && !begins_answer && !begins_write && !begins_read;
  wire reads_again = s_takes && begins_read && reads;
  wire lacks = s_takes && (begins_answer ? s_last || !as_asked : s_last && (in == ANSWER_LOW || (in == ANSWER_HIGH && left != WORDS_BITS'(1))));
  wire gives = (s_takes && in == ANSWER_HIGH) || in == FILL;
  wire gives_last = gives && left == WORDS_BITS'(1);

  always_ff @(posedge clk) begin
    mem_answer_valid <= gives;
    mem_answer_last <= gives_last;
    mem_answer_error <= failed || in == FILL;
    mem_answer_tag <= tag;
    mem_answer_data <= {s_data, low};
    count_malformed <= !rst && (reads_again || unknown || lacks || (s_takes && begins_write && s_last));
    if (gives_last) asked[tag] <= 1'b0;
    if (m_takes && out == CHOOSE && head.kind == host_link_pkg::READ) begin
      asked[mem_read_tag] <= 1'b1;
      asked_words[mem_read_tag] <= read_bytes_up[12:4];
    end
    if (gives) left <= left - 1'b1;
    if (s_takes) begin
      frame_over <= s_last;
      if (in == ANSWER_LOW) low <= s_data;
      if (in == HEAD) begin
        tag <= s_tag;
        failed <= s_head.failed;
        left <= asked_words[s_tag];
      end
      if (lacks) in <= FILL;
      else if (s_last) in <= HEAD;
      else begin
        case (in)
          HEAD: in <= begins_answer ? ANSWER_LOW : begins_write ? REGISTER : begins_read ? HEAD : SKIP;
          ANSWER_LOW: in <= ANSWER_HIGH;
          ANSWER_HIGH: in <= left == WORDS_BITS'(1) ? HEAD : ANSWER_LOW;
          REGISTER: in <= HEAD;
          default: ;
        endcase
      end
    end
    if (in == FILL && gives_last) in <= frame_over ? HEAD : SKIP;
    if (rst) begin
      in <= HEAD;
      mem_answer_valid <= 1'b0;
      asked <= '0;
    end
  end

  // --- registers ---
  assign m_axil_awvalid = writes && !address_taken;
  assign m_axil_wvalid = writes && !data_taken;
  assign m_axil_bready = 1'b1;
  assign m_axil_rready = 1'b1;
  always_ff @(posedge clk) begin
    if (s_takes && in == HEAD) m_axil_awaddr <= s_head.address[REGISTER_BITS-1:0];
    if (m_axil_awvalid && m_axil_awready) address_taken <= 1'b1;
    if (m_axil_wvalid && m_axil_wready) data_taken <= 1'b1;
    if (m_axil_bvalid) writes <= 1'b0;
    if (s_takes && in == REGISTER) begin
      m_axil_wdata <= s_data;
      {writes, address_taken, data_taken} <= 3'b100;
    end
    count_refused <= !rst && m_axil_bvalid && m_axil_bresp != '0;

    if (m_axil_arready) m_axil_arvalid <= 1'b0;
    if (m_axil_rvalid) begin
      answers <= 1'b1;
      answer_failed <= m_axil_rresp != '0;
      value <= m_axil_rdata;
    end
    if (m_takes && out == VALUE) {reads, answers} <= '0;
    if (s_takes && begins_read && !reads) begin
      reads <= 1'b1;
      m_axil_arvalid <= 1'b1;
      m_axil_araddr <= s_head.address[REGISTER_BITS-1:0];
      read_register <= s_head.address[REGISTER_BITS-1:0];
    end
    if (rst) {writes, reads, answers, m_axil_arvalid} <= '0;
  end

  // --- what must hold ---
  wire unused = &{1'b0, mem_write_address[63:40], mem_read_address[63:40], s_head.address[39:REGISTER_BITS], s_bytes_up[3:0], read_bytes_up[3:0]};
  always_ff @(posedge clk) begin
    if (!rst) begin
      assert (out != HIGH || mem_write_valid);
      assert (!answers || reads);
      assert (!mem_write_valid || mem_write_address[63:40] == '0);  // the host maps no others
      assert (!mem_read_valid || mem_read_address[63:40] == '0);
    end
  end
endmodule
