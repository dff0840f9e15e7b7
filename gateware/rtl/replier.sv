// SPDX-License-Identifier: Apache-2.0
// Answers ARP requests for the station's address and ICMP echo requests to it, so that unmodified senders find and ping the NIC.
//
// A request is turned into its answer while it comes in, waits in a frame_fifo until its end says that it is good, and leaves as an Ethernet frame
// without check sequence. Beside udp_rx, it sees the same packets and holds up none.
//
// Contract
//   * Input as of udp_rx, which must have REPLIER set. s_for_replier is looked at in the third cycle behind a packet's last word: only packets with it are judged and counted.
//     Each of them that did not come in bad gives one pulse of one counter: it is answered, or dropped for one reason.
//   * A request that finds no room in the buffer is dropped (drop_busy).
//   * The answer goes to the Ethernet address that the request came from. Of an echo's IPv4 header identification, flags and type of service stay
//     as they came; time to live is new. Bytes after the packet are cut off.
//   * Once the first word of an answer is taken the others come in every cycle.
//   * With local_address 0, that is before it is set, nothing is answered.
module replier #(
    parameter int ECHO_BYTES_MAX = 1472,  // of the data of an echo request, behind the ICMP header [B]
    parameter int DEPTH_WORDS = 512,      // room for answers; a power of two
    parameter int PACKETS = 16            // a power of two
) (
    input logic clk,
    input logic rst,

    input logic [47:0] local_mac,      // as one writes it: the first byte is the highest
    input logic [31:0] local_address,

    input logic [63:0] s_axis_tdata,
    input logic [ 7:0] s_axis_tkeep,
    input logic        s_axis_tvalid,
    input logic        s_axis_tlast,
    input logic        s_axis_tuser,
    input logic [47:0] s_meta_source_mac,  // as one writes it
    input logic [15:0] s_meta_ethertype,
    input logic        s_for_replier,      // of udp_rx

    output logic [63:0] m_axis_tdata,
    output logic [ 7:0] m_axis_tkeep,
    output logic        m_axis_tvalid,
    input  logic        m_axis_tready,
    output logic        m_axis_tlast,

    output logic answered_arp,
    output logic answered_echo,
    output logic drop_arp_malformed,  // not of Ethernet and IPv4
    output logic drop_arp_other,      // no request, or for another address, or from a group of stations
    output logic drop_icmp_length,    // shorter than its header, or the frame is shorter than its IPv4 length
    output logic drop_icmp_checksum,
    output logic drop_icmp_other,     // no echo request, or not to this address alone, or from a group
    output logic drop_echo_large,     // more than ECHO_BYTES_MAX
    output logic drop_busy            // no room
);
  localparam logic [15:0] ARP_BYTES = 16'd28;
  localparam logic [15:0] ICMP_BYTES_MIN = 16'd28;  // IPv4 and ICMP headers
  localparam logic [15:0] ETHERTYPE_ARP = {nanet_pkg::ETHERTYPE_ARP[7:0], nanet_pkg::ETHERTYPE_ARP[15:8]};
  // As they lie in a word: hardware and protocol type, lengths of both addresses; operations; type and code of ICMP.
  localparam logic [47:0] ARP_IPV4 = {8'd4, 8'd6, nanet_pkg::ETHERTYPE_IPV4, 16'h0100};
  localparam logic [15:0] ARP_REQUEST = 16'h0100;
  localparam logic [15:0] ARP_ANSWER = 16'h0200;
  localparam logic [15:0] ECHO_REQUEST = 16'h0008;
  localparam logic [15:0] ECHO_CHANGE = 16'h0008;  // what the sum of an echo loses when the request's type becomes the answer's

  if (ECHO_BYTES_MAX < 0 || ECHO_BYTES_MAX > 8972) begin : g_check_echo
    $fatal(1, "ECHO_BYTES_MAX must be 0 to 8972 (instance %m)");
  end
  if (DEPTH_WORDS * 8 < ECHO_BYTES_MAX + 35) begin : g_check_depth
    $fatal(1, "DEPTH_WORDS must hold an answer of ECHO_BYTES_MAX (instance %m)");
  end

  function automatic logic [15:0] folded(input logic [31:0] sum);
    logic [16:0] once;
    once = 17'(sum[15:0]) + 17'(sum[31:16]);
    folded = once[15:0] + 16'(once[16]);
  endfunction

  wire [47:0] mac_wire = {local_mac[7:0], local_mac[15:8], local_mac[23:16], local_mac[31:24], local_mac[39:32], local_mac[47:40]};
  wire [31:0] address_wire = {local_address[7:0], local_address[15:8], local_address[23:16], local_address[31:24]};

  // --- a word and its place ---
  logic [63:0] word;
  logic [7:0] word_keep;
  logic word_valid, word_last, word_user;
  logic [2:0] s_index, index;  // in its packet, up to 4
  logic arp;
  logic [15:0] content_bytes;  // without what fills the frame
  // Of the content from this word on: whole words, none of them, just one; and no more of it. They stand beside the word, so what is taken of it is known at once.
  logic [12:0] whole_words;
  logic no_whole, after_content;
  wire one_whole = whole_words == 13'd1;
  wire [15:0] s_content_bytes = s_meta_ethertype == ETHERTYPE_ARP ? ARP_BYTES : {s_axis_tdata[23:16], s_axis_tdata[31:24]};

  always_ff @(posedge clk) begin
    word <= s_axis_tdata;
    word_keep <= s_axis_tkeep;
    word_valid <= s_axis_tvalid;
    word_last <= s_axis_tvalid && s_axis_tlast;
    word_user <= s_axis_tuser;
    index <= s_index;
    if (s_axis_tvalid) begin
      s_index <= s_axis_tlast ? '0 : s_index == 3'd4 ? s_index : s_index + 1'b1;
      if (s_index == '0) begin
        arp <= s_meta_ethertype == ETHERTYPE_ARP;
        content_bytes <= s_content_bytes;
        whole_words <= s_content_bytes[15:3];
        no_whole <= 1'b0;  // less than a word has no answer: whatever else is taken of it is thrown away
        after_content <= 1'b0;
      end else if (no_whole) begin
        after_content <= 1'b1;
      end else begin
        whole_words <= whole_words - 1'b1;
        no_whole <= one_whole;
      end
    end
    if (rst) begin
      s_index <= '0;
      word_valid <= 1'b0;
      word_last <= 1'b0;
    end
  end

  // --- trimmed; what the words say ---
  wire [2:0] odd_bytes = content_bytes[2:0];
  wire takes = word_valid && !after_content && (!no_whole || odd_bytes != '0);
  wire [7:0] take_keep = after_content ? '0 : no_whole ? ~(8'hFF << odd_bytes) : '1;
  logic [63:0] taken;
  always_comb for (int lane = 0; lane < 8; lane++) taken[8*lane+:8] = take_keep[lane] ? word[8*lane+:8] : '0;

  logic malformed, other, truncated;
  logic [63:0] saved;  // the second word, and of the third what an ARP packet's sender goes on with
  logic [15:0] saved_next;
  logic [16:0] lower_sum, upper_sum;  // of a word's halves
  logic [31:0] icmp_sum;

  always_ff @(posedge clk) begin
    lower_sum <= word_valid && index > 3'd2 ? 17'(taken[15:0]) + 17'(taken[31:16]) : '0;
    upper_sum <= word_valid && index >= 3'd2 ? 17'(taken[47:32]) + 17'(taken[63:48]) : '0;
    icmp_sum <= word_valid && index == '0 ? '0 : icmp_sum + 32'(lower_sum) + 32'(upper_sum);
    if (word_valid) begin
      truncated <= (!no_whole && !(one_whole && odd_bytes == '0)) || (take_keep & ~word_keep) != '0;
      case (index)
        3'd0: begin
          malformed <= word[47:0] != ARP_IPV4;
          other <= local_address == '0 || (arp && word[63:48] != ARP_REQUEST);
        end
        3'd1: saved <= word;
        3'd2: begin
          saved_next <= word[15:0];
          if (!arp && (word[31:0] != address_wire || word[47:32] != ECHO_REQUEST)) other <= 1'b1;
        end
        3'd3: if (arp && word[31:0] != address_wire) other <= 1'b1;
        default: ;
      endcase
    end
  end

  // --- the request becomes the answer; one word is held back until it is known whether it is the last ---
  // An echo: source and destination change places (their sum stays), time to live and ICMP type are new, and each checksum takes the change up.
  wire [15:0] sum_before = ~s_axis_tdata[31:16];
  wire [15:0] taken_away = ~s_axis_tdata[15:0];
  logic [17:0] header_sum;  // of the word, beside it
  always_ff @(posedge clk) header_sum <= 18'(sum_before) + 18'(taken_away) + 18'({nanet_pkg::IP_PROTOCOL_ICMP, nanet_pkg::IP_TTL});
  wire [31:0] echo_sum = 32'(word[63:48]) + 32'(ECHO_CHANGE);
  logic [63:0] answer;
  always_comb begin
    answer = taken;
    case ({arp, index})
      {1'b0, 3'd1}: answer[31:0] = {~folded(32'(header_sum)), nanet_pkg::IP_PROTOCOL_ICMP, nanet_pkg::IP_TTL};
      {1'b0, 3'd2}: answer = {folded(echo_sum), word[47:40], 8'd0, saved[63:32]};
      {1'b1, 3'd0}: answer[63:48] = ARP_ANSWER;
      {1'b1, 3'd1}: answer = {address_wire[15:0], mac_wire};
      {1'b1, 3'd2}: answer = {saved[47:0], address_wire[31:16]};
      {1'b1, 3'd3}: answer = {32'b0, saved_next, saved[63:48]};
      default: ;
    endcase
  end

  logic [63:0] held;
  logic [7:0] held_keep;
  logic held_valid, held_addresses;  // held_addresses: its high half becomes what the next word begins with
  logic [1:0] ended, ended_bad;      // the end of the frame, one and two cycles later; then the sum is there
  wire concludes = ended[1];

  always_ff @(posedge clk) begin
    ended <= rst ? '0 : {ended[0], word_last};
    ended_bad <= {ended_bad[0], word_user};
    if (takes) begin
      held <= answer;
      held_keep <= take_keep;
      held_addresses <= !arp && index == 3'd1;
    end
    held_valid <= !rst && (takes || (held_valid && !concludes));
  end

  // --- the verdict: the lowest fault is the one that counts ---
  wire judged = concludes && s_for_replier && !ended_bad[1] && !rst;
  wire not_ours = other || s_meta_source_mac[40];  // an answer to a group would multiply
  wire wrong_length = truncated || content_bytes < ICMP_BYTES_MIN;
  wire too_large = int'(content_bytes) > ECHO_BYTES_MAX + int'(ICMP_BYTES_MIN);
  wire sum_right = icmp_sum[31:16] == ~icmp_sum[15:0];  // then both add up to ones alone; no sum is as large as twice that
  wire [3:0] icmp_faults = {too_large, not_ours, !sum_right, wrong_length};
  wire good = judged && (arp ? !malformed && !not_ours : icmp_faults == '0);
  logic fifo_good, fifo_full, fifo_arp, concluded_arp;

  always_ff @(posedge clk) begin
    {drop_echo_large, drop_icmp_other, drop_icmp_checksum, drop_icmp_length} <= judged && !arp ? icmp_faults & (~icmp_faults + 1'b1) : '0;
    drop_arp_malformed <= judged && arp && malformed;
    drop_arp_other <= judged && arp && !malformed && not_ours;
    concluded_arp <= arp;
  end
  assign answered_arp = fifo_good && concluded_arp;
  assign answered_echo = fifo_good && !concluded_arp;
  assign drop_busy = fifo_full;

  logic [63:0] fifo_tdata;
  logic [7:0] fifo_tkeep;
  logic fifo_tvalid, fifo_tready, fifo_tlast;
  logic [47:0] fifo_mac;

  frame_fifo #(
      .DEPTH_WORDS(DEPTH_WORDS),
      .PACKETS(PACKETS),
      .META_BITS(49)
  ) answers (
      .clk,
      .rst,
      .s_axis_tdata({held_addresses ? word[31:0] : held[63:32], held[31:0]}),
      .s_axis_tkeep(held_keep),
      .s_axis_tvalid(held_valid && (takes || concludes)),
      .s_axis_tlast(concludes),
      .s_axis_tuser(!good),  // what is udp_rx's comes in, too, and is thrown away at its end
      .s_meta({arp, s_meta_source_mac}),
      .m_axis_tdata(fifo_tdata),
      .m_axis_tkeep(fifo_tkeep),
      .m_axis_tvalid(fifo_tvalid),
      .m_axis_tready(fifo_tready),
      .m_axis_tlast(fifo_tlast),
      .m_meta({fifo_arp, fifo_mac}),
      .fill_words(),
      .count_good(fifo_good),
      .count_bad(),
      .drop_full(fifo_full)
  );

  // --- out: 14 bytes of Ethernet header, so each word has six bytes of the one before ---
  typedef enum logic [1:0] {
    HEADER,
    CONTENT,
    REST     // bytes of the last word that found no room
  } state_t;

  state_t state;
  logic [47:0] carry;
  logic [5:0] rest_keep;
  wire [15:0] ethertype = fifo_arp ? nanet_pkg::ETHERTYPE_ARP : nanet_pkg::ETHERTYPE_IPV4;
  wire spills = fifo_tkeep[7:2] != '0;
  assign fifo_tready = state == CONTENT && m_axis_tready;
  assign m_axis_tvalid = state == REST || fifo_tvalid;
  assign m_axis_tlast = state == REST || (state == CONTENT && fifo_tlast && !spills);

  always_comb begin
    m_axis_tdata = {fifo_tdata[15:0], carry};
    m_axis_tkeep = m_axis_tlast ? {fifo_tkeep[1:0], 6'h3F} : '1;
    if (state == HEADER) begin
      m_axis_tdata = {
        mac_wire[15:0], fifo_mac[7:0], fifo_mac[15:8], fifo_mac[23:16], fifo_mac[31:24], fifo_mac[39:32], fifo_mac[47:40]
      };
    end else if (state == REST) begin
      m_axis_tdata = {16'b0, carry};
      m_axis_tkeep = {2'b0, rest_keep};
    end
  end

  always_ff @(posedge clk) begin
    if (m_axis_tvalid && m_axis_tready) begin
      case (state)
        HEADER: begin
          carry <= {ethertype, mac_wire[47:16]};
          state <= CONTENT;
        end
        CONTENT: begin
          carry <= fifo_tdata[63:16];
          rest_keep <= fifo_tkeep[7:2];
          if (fifo_tlast) state <= spills ? REST : HEADER;
        end
        default: state <= HEADER;
      endcase
    end
    if (rst) state <= HEADER;
  end

  // --- what must hold ---
  logic m_inside;
  logic [2:0] quiet;
  always_ff @(posedge clk) begin
    quiet <= rst ? '0 : {quiet[1:0], s_axis_tvalid && s_axis_tlast};
    m_inside <= !rst && (m_axis_tvalid && m_axis_tready ? !m_axis_tlast : m_inside);
    if (!rst) begin
      assert (!s_axis_tvalid || s_index != '0 || quiet == '0);  // the verdict on a packet comes before the next packet does
      assert (!m_inside || m_axis_tvalid);  // no gap in an answer
      assert (!m_axis_tvalid || m_axis_tlast || m_axis_tkeep == '1);
      assert ($onehot0({answered_arp, answered_echo, drop_arp_malformed, drop_arp_other, drop_icmp_length, drop_icmp_checksum,
                        drop_icmp_other, drop_echo_large, drop_busy}));
    end
  end
endmodule
