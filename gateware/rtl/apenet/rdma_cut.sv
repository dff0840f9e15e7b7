// SPDX-License-Identifier: Apache-2.0
// Jobs into packets: which bytes of memory go into which packet, and whereto. Those of the TX ring and those that other nodes ask for take turns, a message each.
//
// Contract
//   * A GET is taken when rdma_messages has a line for it (open_room). So nothing that waits for an answer stands before a REPLY.
//   * Each packet of a REPLY is asked of rdma_regions; what is not allowed ends it there, and its asker hears no more of it. Where a message of our own may not
//     be read, the page table says.
//   * Every job of the ring makes commands of which one is final_, with its tag: one that cannot be sent makes a single one, refused.
//   * For each packet with data a read is asked for in the cycle in which its command leaves.
module rdma_cut #(
    parameter int ADDRESS_BITS = 44,  // of a device address
    parameter int X_BITS = 3,         // nodes that there may be: this many bits of each coordinate
    parameter int Y_BITS = 3,
    parameter int Z_BITS = 3
) (
    input logic clk,
    input logic rst,

    input apenet_pkg::place_t at,
    input logic [3:0] own_port,

    input  logic           s_valid,  // of the ring
    output logic           s_ready,
    input  rdma_pkg::job_t s_job,
    input  logic           r_valid,  // asked for
    output logic           r_ready,
    input  rdma_pkg::job_t r_job,

    // To rdma_messages.
    input  logic               open_room,
    output logic               open_valid,
    input  logic               open_ready,
    output apenet_pkg::place_t open_to,
    output logic [       15:0] open_process,
    output logic [       63:0] open_tag,
    input  logic [       15:0] open_number,

    // To rdma_regions.
    output logic [rdma_pkg::REGION_BITS-1:0] region,
    output logic [                     31:0] nonce,
    output logic [rdma_pkg::OFFSET_BITS-1:0] offset,
    output logic [ rdma_pkg::BYTES_BITS-1:0] bytes,
    input  logic                             allowed,
    input  logic [         ADDRESS_BITS-1:0] address,

    // To dma_read.
    output logic                    read_valid,
    input  logic                    read_ready,
    output logic [ADDRESS_BITS-1:0] read_address,
    output logic [            12:0] read_bytes,

    output logic               m_valid,
    input  logic               m_ready,
    output rdma_pkg::command_t m_command,

    output logic count_refused,       // a job of the ring
    output logic count_reply_refused  // one that was asked for: its first packet, or a later one
);
  localparam int NODE_BITS = X_BITS + Y_BITS + Z_BITS;
  localparam logic [12:0] DATA_BYTES_MAX = 13'(rdma_pkg::DATA_BYTES_MAX);

  typedef enum logic [2:0] {CLEAR, IDLE, START, COUNT, SIZE, LOOK, LOOK_2, CUT} state_t;
  state_t state;
  rdma_pkg::job_t job;
  logic own, own_last, refused;
  wire is_put = job.kind == rdma_pkg::TYPE_PUT;
  wire is_get = job.kind == rdma_pkg::TYPE_GET;
  wire is_event = job.kind == rdma_pkg::TYPE_EVENT;
  wire is_reply = job.kind == rdma_pkg::TYPE_REPLY;
  wire is_send = job.kind == rdma_pkg::TYPE_SEND;
  wire is_alone = is_event || is_send;  // one packet, whose header names its message
  wire has_data = is_put || is_reply || is_send;

  // --- whose turn it is ---
  wire may_own = s_valid && (s_job.kind != rdma_pkg::TYPE_GET || open_room);
  wire takes_own = state == IDLE && may_own && (!r_valid || !own_last);
  assign s_ready = takes_own;
  assign r_ready = state == IDLE && r_valid && !takes_own;

  // --- the number of the next message to each node ---
  logic [15:0] numbers[2**NODE_BITS];
  logic [15:0] next_number, number;
  logic [NODE_BITS-1:0] clears;
  wire [NODE_BITS-1:0] node = {job.to.z[Z_BITS-1:0], job.to.y[Y_BITS-1:0], job.to.x[X_BITS-1:0]};
  wire outside = (job.to.z >> Z_BITS) != '0 || (job.to.y >> Y_BITS) != '0 || (job.to.x >> X_BITS) != '0;
  wire numbers_it = state == COUNT && (is_put || is_alone) && !refused;
  always_ff @(posedge clk) begin
    if (state == CLEAR) numbers[clears] <= '0;
    else if (numbers_it) numbers[node] <= next_number + 1'b1;
    next_number <= numbers[node];
  end

  // --- how many packets: of 255 words of data, the first of which may begin within its word ---
  logic [15:0] words;
  wire [17:0] end_byte = job.bytes[17:0] + 18'(job.offset[3:0]) - 18'd1;
  wire [7:0] last = 8'((words + 16'd1 + (words >> 8)) >> 8);  // words / 255

  // --- the packet that is next ---
  logic [7:0] packet, packets;
  logic [17:0] left;
  logic [12:0] size;
  logic final_;
  wire [12:0] room = DATA_BYTES_MAX - 13'(job.offset[3:0]);
  wire fits = left <= 18'(room);
  assign region = job.local_[rdma_pkg::OFFSET_BITS+:rdma_pkg::REGION_BITS];
  assign offset = job.local_[rdma_pkg::OFFSET_BITS-1:0];
  assign nonce = job.local_nonce;
  assign bytes = rdma_pkg::BYTES_BITS'(size);
  wire [ADDRESS_BITS-1:0] from = is_reply ? address : job.local_[ADDRESS_BITS-1:0];
  wire may = !is_reply || allowed || refused;
  wire [12:0] in_end = 13'(from[3:0]) + size;
  wire [12:0] out_end = 13'(job.offset[3:0]) + size;
  wire reads = has_data && !refused;
  assign read_valid = state == CUT && reads && may && m_ready;
  assign read_address = {from[ADDRESS_BITS-1:4], 4'd0};
  assign read_bytes = in_end;
  assign m_valid = state == CUT && may && (!reads || read_ready);
  wire leaves = m_valid && m_ready;

  assign open_valid = state == COUNT && is_get && !refused;
  assign open_to = job.to;
  assign open_process = job.process;
  assign open_tag = job.tag;

  rdma_pkg::event_address_t event_address;
  assign event_address = '{at, number, is_send ? '0 : job.offset[15:0]};
  always_comb begin
    m_command = '0;
    m_command.header.packet_type = job.kind;
    m_command.header.x = job.to.x;
    m_command.header.y = job.to.y;
    m_command.header.z = job.to.z;
    m_command.header.port = job.port;
    m_command.header.process = job.process;
    m_command.header.bytes = is_event ? '0 : is_get ? 14'd32 : is_send ? 14'(out_end) : 14'd16 + 14'(out_end);
    m_command.header.address = is_alone ? event_address : {job.region, job.offset};
    m_command.message.nonce = job.nonce;
    m_command.message.source = at;
    m_command.message.number = number;
    m_command.message.packet = packet;
    m_command.message.last = packets;
    m_command.message.port = own_port;
    m_command.landing.offset = job.local_[rdma_pkg::OFFSET_BITS-1:0];
    m_command.landing.region = job.local_[rdma_pkg::OFFSET_BITS+:rdma_pkg::REGION_BITS];
    m_command.landing.nonce = job.local_nonce;
    m_command.landing.bytes = job.bytes;
    m_command.words_in = 8'((in_end - 13'd1) >> 4);
    m_command.words_out = 8'((out_end - 13'd1) >> 4);
    m_command.lane_in = from[3:0];
    m_command.lane_out = job.offset[3:0];
    m_command.lane_end = out_end[3:0];
    m_command.own = own;
    m_command.final_ = !has_data || final_ || refused;
    m_command.refused = refused;
    m_command.tag = job.tag;
  end

  always_ff @(posedge clk) begin
    count_refused <= 1'b0;
    count_reply_refused <= 1'b0;
    case (state)
      CLEAR: begin
        clears <= clears + 1'b1;
        if (clears == '1) state <= IDLE;
      end
      IDLE: begin
        job <= takes_own ? s_job : r_job;
        own <= takes_own;
        if (takes_own || r_ready) begin
          own_last <= takes_own;
          state <= START;
        end
      end
      START: begin
        // What others ask for has their word for its length alone.
        refused <= !(is_event || (job.bytes != '0 && job.bytes <= (is_send ? 32'(rdma_pkg::DATA_BYTES_MAX) : 32'(rdma_pkg::MESSAGE_BYTES_MAX)))) || outside ||
                   !(is_put || is_get || is_alone || (is_reply && !own));
        if (is_send) job.offset <= '0;
        words <= 16'(end_byte >> 4);
        packet <= '0;
        left <= job.bytes[17:0];
        state <= COUNT;
      end
      COUNT: begin
        number <= is_get ? open_number : is_reply ? job.number : next_number;
        packets <= is_put || is_reply ? last : '0;
        if (refused) begin
          count_refused <= own;
          count_reply_refused <= !own;
          state <= own ? CUT : IDLE;
        end else if (!is_get || open_ready) state <= has_data ? SIZE : CUT;
      end
      SIZE: begin
        size <= fits ? left[12:0] : room;
        final_ <= fits;
        state <= is_reply ? LOOK : CUT;
      end
      LOOK: state <= LOOK_2;
      LOOK_2: state <= CUT;
      default: begin  // CUT
        if (!may) begin
          count_reply_refused <= 1'b1;
          state <= IDLE;
        end else if (leaves) begin
          packet <= packet + 1'b1;
          left <= left - 18'(size);
          job.offset <= job.offset + rdma_pkg::OFFSET_BITS'(size);
          job.local_ <= job.local_ + 48'(size);
          state <= m_command.final_ ? IDLE : SIZE;
        end
      end
    endcase
    if (rst) begin
      state <= CLEAR;
      clears <= '0;
      own_last <= 1'b0;
      count_refused <= 1'b0;
      count_reply_refused <= 1'b0;
    end
  end

  // --- what must hold ---
  always_ff @(posedge clk) begin
    if (!rst) begin
      assert (state != CUT || refused || !has_data || final_ == (packet == packets));
    end
  end
endmodule
