// SPDX-License-Identifier: Apache-2.0
// Packets of a local port into registered memory: docs/apenet-rdma-format.md. What a packet may write is known before its first byte is written; that it has
// landed is told when its footer is good and its writes have been done. A SEND goes to rdma_sends, which keeps it until it is known to be good.
//
// Contract
//   * Every packet is taken, and nothing here waits for the sender of this node: for memory alone, and for the completion queue while that has room.
//   * Each packet is one pulse of one bit of `counts`. Of several reasons: how it came (DROP_FLAGGED, DROP_CRC), then the first one in the order of its words.
//   * A GET is offered for one cycle (get_valid), and is lost if get_ready is not up.
//   * A PUT or REPLY is written as it comes, byte for byte where its region says, or not at all. One that is found bad at its end has been written, but has not
//     landed: its message is never complete.
//   * From the word after the header to the first word of data: LATENCY_CYCLES, if no packet before it has yet to land.
module rdma_rx #(
    parameter int ADDRESS_BITS = 44  // of a device address
) (
    input logic clk,
    input logic rst,

    input  logic [127:0] s_axis_tdata,
    input  logic         s_axis_tvalid,
    output logic         s_axis_tready,
    input  logic         s_axis_tlast,

    // To rdma_regions, and what it says.
    output logic [ rdma_pkg::REGION_BITS-1:0] region,
    output logic [                      31:0] nonce,
    output logic [ rdma_pkg::OFFSET_BITS-1:0] offset,
    output logic [  rdma_pkg::BYTES_BITS-1:0] bytes,
    input  logic                              allowed,
    input  logic                              bad_key,
    input  logic                              bad_rights,
    input  logic [          ADDRESS_BITS-1:0] address,

    // To rdma_messages, and what it says.
    output logic                            look_soon,
    output logic                            look_valid,
    input  logic                            look_ready,
    output logic [                     4:0] look_kind,
    output apenet_pkg::place_t              look_source,
    output logic [                    15:0] look_number,
    output logic [                     7:0] look_packet,
    output logic [                     7:0] look_last,
    output logic [                    15:0] look_process,
    output logic [                    15:0] look_value,
    output logic [rdma_pkg::BYTES_BITS-1:0] look_bytes,
    input  logic                            verdict_valid,
    input  rdma_pkg::verdict_t              verdict,
    output logic                            land,
    output logic                            leave,

    // To rdma_sends: a SEND's header and words, and what became of it. send_wanted is right when its footer has come.
    output logic                send_begins,
    output apenet_pkg::header_t send_header,
    output logic                send_valid,
    output logic                send_ends,
    output logic                send_good,
    input  logic                send_wanted,
    input  logic                send_room,

    // To dma_write.
    output logic                    write_valid,
    input  logic                    write_ready,
    output logic                    write_last,
    output logic [ADDRESS_BITS-1:0] write_address,
    output logic [            12:0] write_bytes,
    output logic [           127:0] write_data,
    input  logic                    done,
    input  logic                    done_fault,

    // A GET of another node: the REPLY that it asks for.
    output logic           get_valid,
    input  logic           get_ready,
    output rdma_pkg::job_t get,

    output logic [rdma_pkg::COUNTS-1:0] counts
);
  localparam int LATENCY_CYCLES = 4;
  localparam logic [119:0] FIXED = apenet_pkg::HEADER_FIXED;

  typedef enum logic [2:0] {HEADER, MESSAGE, LANDING, LOOK, DATA, FOOTER, REST, ENDED} state_t;
  state_t state;
  wire takes = s_axis_tvalid && s_axis_tready;

  // --- the packet's first words ---
  /* verilator lint_off UNUSEDSIGNAL */  // of their fields some are used
  apenet_pkg::header_t came, header;
  rdma_pkg::message_t message;
  rdma_pkg::landing_t landing;
  /* verilator lint_on UNUSEDSIGNAL */
  rdma_pkg::event_address_t event_address;
  assign came = s_axis_tdata[119:0];
  assign event_address = header.address;
  wire comes_data = came.packet_type == rdma_pkg::TYPE_PUT || came.packet_type == rdma_pkg::TYPE_REPLY;
  wire comes_get = came.packet_type == rdma_pkg::TYPE_GET;
  wire comes_event = came.packet_type == rdma_pkg::TYPE_EVENT;
  wire comes_send = came.packet_type == rdma_pkg::TYPE_SEND;
  wire comes_known = comes_data || comes_get || comes_event || comes_send;
  wire is_get = header.packet_type == rdma_pkg::TYPE_GET;
  wire is_event = header.packet_type == rdma_pkg::TYPE_EVENT;
  wire is_send = header.packet_type == rdma_pkg::TYPE_SEND;
  wire is_alone = is_event || is_send;  // it is its message, which its header names
  // Data stands in the lanes of its address: of its first word so many are before it.
  wire [13:0] ahead = 14'd16 + 14'(came.address[3:0]);
  logic fits;
  always_comb begin
    fits = came.bytes == (comes_get ? 14'd32 : 14'd0);
    if (comes_data) fits = came.bytes > ahead && came.bytes <= 14'(apenet_pkg::PAYLOAD_BYTES_MAX);
    if (comes_send) fits = came.bytes != '0 && came.bytes <= 14'(rdma_pkg::DATA_BYTES_MAX);
  end
  wire takes_it = comes_known && fits && (!comes_send || send_room);
  logic [12:0] data_bytes;
  logic [8:0] words_left;  // of data
  assign region = header.address[rdma_pkg::OFFSET_BITS+:rdma_pkg::REGION_BITS];
  assign offset = header.address[rdma_pkg::OFFSET_BITS-1:0];
  assign nonce = message.nonce;
  assign bytes = rdma_pkg::BYTES_BITS'(data_bytes);

  // --- its CRC ---
  logic [31:0] crc, crc_next;
  crc32_wide i_crc (
      .crc(state == HEADER ? '1 : crc),
      .data(state == HEADER ? {8'd0, s_axis_tdata[119:0] & FIXED} : s_axis_tdata),
      .crc_next
  );
  logic right, flagged;  // its footer
  wire ends = takes && s_axis_tlast;
  always_ff @(posedge clk) begin
    if (takes) crc <= crc_next;
    if (ends) flagged <= s_axis_tdata[127:32] == apenet_pkg::FOOTER_FLAGGED;
    if (ends) right <= s_axis_tdata == {apenet_pkg::FOOTER_GOOD, ~crc};
  end

  // --- the packet before, of which all words have come, or will without us: written, or an event that was looked for ---
  typedef enum logic [1:0] {NONE, WRITTEN, TOLD} behind_t;
  behind_t behind;
  logic done_there, footer_there, fault;
  logic footer_was;                    // came a cycle ago, of a packet that is written
  logic right_behind, flagged_behind;  // until it has landed
  wire written = behind == WRITTEN && done_there && footer_there;
  wire told = behind == TOLD && verdict_valid;

  // --- the packet whose words come ---
  logic looked;                                    // in LOOK
  logic dropped;                                   // for this reason, if it came as it should
  logic [rdma_pkg::COUNTS-1:0] reason;
  wire judged = state == LOOK && looked && verdict_valid;
  wire lands = verdict == rdma_pkg::LANDS;
  wire ended = state == ENDED && behind == NONE;   // one that is not written
  wire unwanted = is_send && !send_wanted;
  wire came_well = right && !dropped && !unwanted;
  assign look_soon = state == MESSAGE || (state == FOOTER && is_alone);
  assign look_valid = (state == LOOK && !looked) || (ended && is_alone && came_well);
  assign look_kind = header.packet_type;
  assign look_source = is_alone ? event_address.source : message.source;
  assign look_number = is_alone ? event_address.number : message.number;
  assign look_packet = is_alone ? '0 : message.packet;
  assign look_last = is_alone ? '0 : message.last;
  assign look_process = header.process;
  assign look_value = is_event ? event_address.value : '0;
  assign look_bytes = is_alone ? '0 : bytes;
  wire looks = look_valid && look_ready;
  assign land = (told && lands) || (written && right_behind && !fault);
  assign leave = (judged && lands && !allowed) || (written && !land);

  assign s_axis_tready = state == DATA ? write_ready || is_send : state != LOOK && state != ENDED;
  assign write_valid = state == DATA && s_axis_tvalid && !is_send;
  assign write_last = words_left == 9'd1;
  assign write_bytes = data_bytes;
  assign write_data = s_axis_tdata;

  // A SEND is waited for until it is judged: so one at a time is under way to rdma_sends.
  logic tells_send;
  assign send_begins = state == HEADER && takes && comes_send;
  assign send_header = came;
  assign send_valid = state == DATA && s_axis_tvalid && is_send;
  assign send_ends = (told && tells_send) || (ended && is_send && !came_well);
  assign send_good = told && lands;

  function automatic logic [rdma_pkg::COUNTS-1:0] one(input int place);
    one = rdma_pkg::COUNTS'(1) << place;
  endfunction
  logic [rdma_pkg::COUNTS-1:0] refusal;
  always_comb begin
    case (verdict)
      rdma_pkg::STALE: refusal = one(rdma_pkg::DROP_STALE);
      rdma_pkg::DUPLICATE: refusal = one(rdma_pkg::DROP_DUPLICATE);
      rdma_pkg::MISFIT: refusal = one(rdma_pkg::DROP_MISFIT);
      rdma_pkg::OUTSIDE: refusal = one(rdma_pkg::DROP_OUTSIDE);
      rdma_pkg::NO_QUEUE: refusal = one(rdma_pkg::DROP_QUEUE);
      default: refusal = tells_send ? one(rdma_pkg::COUNT_SEND) : one(rdma_pkg::COUNT_EVENT);
    endcase
  end

  always_ff @(posedge clk) begin
    counts <= '0;
    case (state)
      HEADER: begin
        if (takes) begin
          header <= came;
          data_bytes <= 13'(came.bytes - ahead);
          words_left <= 9'(apenet_pkg::payload_words(came.bytes)) - (comes_send ? 9'd0 : 9'd1);
          dropped <= !takes_it;
          reason <= !comes_known ? one(rdma_pkg::DROP_TYPE) : !fits ? one(rdma_pkg::DROP_LENGTH) : one(rdma_pkg::DROP_FULL);
          state <= !takes_it ? REST : comes_event ? FOOTER : comes_send ? DATA : MESSAGE;
        end
      end
      MESSAGE: begin
        if (takes) message <= s_axis_tdata;
        looked <= 1'b0;
        if (takes) state <= is_get ? LANDING : LOOK;
      end
      LANDING: begin
        if (takes) landing <= s_axis_tdata;
        if (takes) state <= FOOTER;
      end
      LOOK: begin
        if (looks) looked <= 1'b1;
        if (judged) begin
          dropped <= !(allowed && lands);
          reason <= bad_key ? one(rdma_pkg::DROP_KEY) : bad_rights ? one(rdma_pkg::DROP_RIGHTS) : !allowed ? one(rdma_pkg::DROP_BOUNDS) : refusal;
          write_address <= address;
          state <= allowed && lands ? DATA : REST;
        end
      end
      DATA: begin
        if (takes) words_left <= words_left - 1'b1;
        if (takes && write_last) state <= FOOTER;
      end
      FOOTER, REST: if (ends) state <= state == FOOTER && !is_get && !is_alone ? HEADER : ENDED;
      default: begin  // ENDED
        if (ended) begin
          if (!came_well) counts <= flagged ? one(rdma_pkg::DROP_FLAGGED) : !right ? one(rdma_pkg::DROP_CRC) : dropped ? reason : one(rdma_pkg::DROP_NO_MATCH);
          else if (is_get) counts <= get_ready ? one(rdma_pkg::COUNT_GET) : one(rdma_pkg::DROP_REQUESTS);
          if (!came_well || is_get || (looks && is_event)) state <= HEADER;
        end
      end
    endcase

    // Its footer stands in `right` for one cycle: the next packet's may come before this one has landed.
    footer_was <= state == FOOTER && ends && !is_get && !is_alone;
    if (footer_was) {right_behind, flagged_behind} <= {right, flagged};
    if (footer_was) footer_there <= 1'b1;
    if (done) {done_there, fault} <= {1'b1, done_fault};
    if (written) begin
      counts <= flagged_behind ? one(rdma_pkg::DROP_FLAGGED) : !right_behind ? one(rdma_pkg::DROP_CRC) : fault ? one(rdma_pkg::DROP_PAGE) : one(rdma_pkg::COUNT_LANDED);
      behind <= NONE;
    end
    if (told) begin
      counts <= refusal;
      behind <= NONE;
      if (tells_send) state <= HEADER;
    end
    if (ended && looks) {behind, tells_send} <= {TOLD, is_send};
    if (judged && allowed && lands) begin
      behind <= WRITTEN;
      {done_there, footer_there} <= '0;
    end
    if (rst) begin
      state <= HEADER;
      behind <= NONE;
      footer_was <= 1'b0;
      counts <= '0;
    end
  end

  // --- the REPLY that a GET asks for ---
  assign get_valid = ended && is_get && came_well;
  always_comb begin
    get = '0;
    get.kind = rdma_pkg::TYPE_REPLY;
    get.to = message.source;
    get.port = message.port;
    get.process = header.process;
    get.number = message.number;
    get.nonce = landing.nonce;
    get.region = landing.region;
    get.offset = landing.offset;
    get.local_ = header.address;
    get.local_nonce = message.nonce;
    get.bytes = landing.bytes;
  end

  // --- what must hold ---
  always_ff @(posedge clk) begin
    if (!rst) begin
      assert (!takes || s_axis_tlast == (state == FOOTER) || state == REST);  // the words of a packet are its header's
      assert (behind == NONE || !judged);
      assert (!(told && tells_send) || state == ENDED);
      assert ($onehot0(counts));
    end
  end
endmodule
