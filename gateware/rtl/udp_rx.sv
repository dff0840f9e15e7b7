// SPDX-License-Identifier: Apache-2.0
// UDP offload: checks IPv4 and UDP headers of Ethernet payloads and hands on the UDP payloads that an entry of the match table wants.
//
// Contract
//   * Cut through: the payload leaves while the frame still comes in. A packet whose header is refused makes no output; one that proves bad
//     later ends with m_axis_tuser, discard it then. Bytes after the payload (filling of short frames) are cut off.
//   * A payload word leaves two cycles after the word that completes the next one came in. The last payload word waits for the end of the
//     frame, which may lie after the payload, and leaves LAST_CYCLES after it. Nothing else makes a word wait: for a given size the latency
//     is one number.
//   * Sideband holds from a packet's first word to its last.
//   * Whether a packet is wanted, and its target, is said once, by the table as it stood in one cycle: however the table is written under traffic,
//     a packet comes whole or is one drop_no_match.
//   * A packet that ends without m_axis_tuser has m_meta_payload_bytes bytes, and none has more. These are PAYLOAD_BYTES_MAX at most: what announces
//     more is refused.
//   * Each packet that did not come in bad gives one pulse of one counter when its frame ends.
//   * Between two packets lie at least GAP_CYCLES, as mac_10g_rx and eth_rx make them.
//   * With REPLIER, ARP and ICMP to this station (its IPv4 header good) are not counted here: they are replier's, who looks at for_replier from
//     the third cycle after the packet's last word on, before the next packet begins. Not those that came to a group, by either address: many
//     would answer.
//   * Groups may be written under traffic: the address is judged once, by them as they stood in one cycle. A packet to a group may come in any frame
//     that eth_rx takes; what came in one to a group's Ethernet address (s_meta_group) must be to a group: not to this station's address, nor to all (RFC 1122).
//   * Refused and not supported: IP options, fragments, payloads of no bytes. A UDP checksum of zero means that there is none.
module udp_rx #(
    parameter int MATCH_ENTRIES = 16,
    parameter int TARGET_BITS = 4,           // as of match_table
    parameter int PAYLOAD_BYTES_MAX = 8976,
    parameter bit REPLIER = 1'b0,            // there is a replier beside it
    parameter int GROUPS = 4,                // as of group_table
    localparam int SLOTS = GROUPS == 0 ? 1 : GROUPS
) (
    input logic clk,
    input logic rst,

    // Addresses and ports are as one writes them: 10.0.0.1 is 32'h0A000001.
    input logic [                     31:0] local_address,
    input logic [                SLOTS-1:0] group_valid,
    input logic [SLOTS-1:0][nanet_pkg::IPV4_GROUP_BITS-1:0] groups,
    input logic                             table_write,
    input logic [$clog2(MATCH_ENTRIES)-1:0] table_index,
    input logic                             table_enable,
    input logic [                     15:0] table_port,
    input logic [                     31:0] table_source_address,
    input logic [                     31:0] table_source_mask,
    input logic [          TARGET_BITS-1:0] table_target,

    input logic [63:0] s_axis_tdata,
    input logic [ 7:0] s_axis_tkeep,
    input logic        s_axis_tvalid,
    input logic        s_axis_tlast,
    input logic        s_axis_tuser,
    input logic [15:0] s_meta_ethertype,
    input logic [63:0] s_meta_start_cycle,
    input logic        s_meta_group,  // the frame came to the Ethernet address of a group

    output logic [           63:0] m_axis_tdata,
    output logic [            7:0] m_axis_tkeep,
    output logic                   m_axis_tvalid,
    output logic                   m_axis_tlast,
    output logic                   m_axis_tuser,
    output logic [TARGET_BITS-1:0] m_meta_target,
    output logic [           31:0] m_meta_source_address,
    output logic [           15:0] m_meta_source_port,
    output logic [           15:0] m_meta_payload_bytes,
    output logic [           63:0] m_meta_start_cycle,

    output logic for_replier,  // the packet is replier's

    output logic count_good,
    output logic drop_ethertype,        // not IPv4
    output logic drop_short,            // ends before the headers do
    output logic drop_version,          // not version 4
    output logic drop_options,          // header not of 20 bytes
    output logic drop_header_checksum,
    output logic drop_fragment,
    output logic drop_protocol,         // not UDP
    output logic drop_address,          // not to this station's address, one of its groups or all
    output logic drop_length,           // the lengths of IPv4 and UDP disagree, or are more than PAYLOAD_BYTES_MAX
    output logic drop_empty,            // no payload
    output logic drop_no_match,         // no entry of the table wants it
    output logic drop_truncated,        // the frame is shorter than its IPv4 length
    output logic drop_udp_checksum
);
  localparam int LAST_CYCLES = 4;  // one more if the last word has more than four bytes
  localparam int GAP_CYCLES = 3;
  localparam int BYTES_BITS = 15;  // of a packet's length as received
  localparam int UDP_BYTES_MAX = PAYLOAD_BYTES_MAX + nanet_pkg::UDP_HEADER_BYTES;

  if (PAYLOAD_BYTES_MAX < 1 || UDP_BYTES_MAX + nanet_pkg::IPV4_HEADER_BYTES >= 1 << BYTES_BITS) begin : g_check_payload
    $fatal(1, "PAYLOAD_BYTES_MAX must be 1 to 32739 (instance %m)");
  end

  // Sums without a carry chain for each operand: first the carries of each place go to the next.
  function automatic logic [18:0] carries(input logic [18:0] a, input logic [18:0] b, input logic [18:0] c);
    carries = (a & b) | (a & c) | (b & c);
  endfunction

  function automatic logic [19:0] sum_of_three(input logic [19:0] a, input logic [19:0] b, input logic [19:0] c);
    sum_of_three = (a ^ b ^ c) + {carries(a[18:0], b[18:0], c[18:0]), 1'b0};
  endfunction

  function automatic logic [19:0] halves_sum(input logic [63:0] word);
    halves_sum = sum_of_three(
        {4'b0, word[15:0] ^ word[31:16] ^ word[47:32]}, {carries(19'(word[15:0]), 19'(word[31:16]), 19'(word[47:32])), 1'b0},
        20'(word[63:48])
    );
  endfunction

  function automatic logic [15:0] swapped(input logic [15:0] half);
    swapped = {half[7:0], half[15:8]};
  endfunction

  // Whether the carries of a sum of 16-bit halves, added at its low end, make all ones: high and low part are then each other's complement. Its
  // value does not depend on the order of bytes, so halves are taken as they lie.
  function automatic logic is_ones(input logic [31:0] sum);
    is_ones = (sum[31:16] ^ sum[15:0]) == '1;
  endfunction

  function automatic logic [3:0] kept(input logic [7:0] keep);
    kept = '0;
    for (int lane = 0; lane < 8; lane++) if (keep[lane]) kept = 4'(lane + 1);
  endfunction

  // --- headers, as the first four words bring them ---
  logic [2:0] index;  // of the word in its packet, up to 4
  logic is_udp;       // index is 3: the word has the UDP length
  logic [31:0] previous;
  logic [BYTES_BITS-1:0] received_bytes;
  logic other_ethertype, other_version, options, fragment, other_protocol, other_address, no_checksum;
  logic arp, icmp, group_frame, not_own, group_prefix;
  logic [SLOTS-1:0] group_hits;
  logic [15:0] total_bytes, source_port, port, udp_bytes;
  logic [31:0] source_address;
  logic [63:0] start_cycle;
  wire [3:0] s_kept = kept(s_axis_tkeep);
  wire [31:0] destination_address = {s_axis_tdata[7:0], s_axis_tdata[15:8], s_axis_tdata[23:16], s_axis_tdata[31:24]};

  always_ff @(posedge clk) begin
    if (s_axis_tvalid) begin
      previous <= s_axis_tdata[63:32];
      received_bytes <= BYTES_BITS'(s_kept) + (index == '0 ? '0 : received_bytes);
      index <= s_axis_tlast ? '0 : index == 3'd4 ? index : index + 1'b1;
      is_udp <= index == 3'd2 && !s_axis_tlast;
      case (index)
        3'd0: begin
          other_ethertype <= s_meta_ethertype != swapped(nanet_pkg::ETHERTYPE_IPV4);
          arp <= s_meta_ethertype == swapped(nanet_pkg::ETHERTYPE_ARP);
          other_version <= s_axis_tdata[7:4] != 4'd4;
          options <= s_axis_tdata[3:0] != 4'd5;
          start_cycle <= s_meta_start_cycle;
          group_frame <= s_meta_group;
          total_bytes <= swapped(s_axis_tdata[31:16]);
          fragment <= {s_axis_tdata[53:48], s_axis_tdata[63:56]} != '0;
        end
        3'd1: begin
          other_protocol <= s_axis_tdata[15:8] != nanet_pkg::IP_PROTOCOL_UDP;
          icmp <= s_axis_tdata[15:8] == nanet_pkg::IP_PROTOCOL_ICMP;
          source_address <= {s_axis_tdata[39:32], s_axis_tdata[47:40], s_axis_tdata[55:48], s_axis_tdata[63:56]};
        end
        3'd2: begin
          not_own <= destination_address != local_address && destination_address != '1;
          group_prefix <= destination_address[31:nanet_pkg::IPV4_GROUP_BITS] == nanet_pkg::IPV4_GROUP_PREFIX;
          for (int g = 0; g < SLOTS; g++)
            group_hits[g] <= group_valid[g] && destination_address[nanet_pkg::IPV4_GROUP_BITS-1:0] == groups[g];
          source_port <= swapped(s_axis_tdata[47:32]);
          port <= swapped(s_axis_tdata[63:48]);
        end
        3'd3: begin
          udp_bytes <= swapped(s_axis_tdata[15:0]);
          no_checksum <= s_axis_tdata[31:16] == '0;
        end
        default: ;
      endcase
    end
    if (rst) begin
      index <= '0;
      is_udp <= 1'b0;
    end
  end

  // A cycle later, and a cycle before it is looked at: the word after the next one completes the payload's first.
  always_ff @(posedge clk) other_address <= (not_own || group_frame) && !(group_prefix && group_hits != '0);

  // --- their sums: the halves of a word in pairs, a cycle later onto the sums ---
  localparam logic [2:0] NO_HEADER = 3'd4;
  logic [16:0] low_pair, high_pair;
  logic [2:0] pairs_index;  // of the word they are of
  logic [19:0] header_sum;
  logic [19:0] pseudo_sum;  // of the pseudo header and the UDP header; the UDP length counts in both
  wire first_pseudo = pairs_index <= 3'd1;  // the first word has nothing of it, the second overwrites that

  always_ff @(posedge clk) begin
    low_pair <= 17'(s_axis_tdata[15:0]) + 17'(s_axis_tdata[31:16]);
    high_pair <= 17'(is_udp ? s_axis_tdata[15:0] : s_axis_tdata[47:32]) + 17'(is_udp ? 16'b0 : s_axis_tdata[63:48]);
    pairs_index <= s_axis_tvalid ? index : NO_HEADER;
    if (pairs_index <= 3'd2)
      header_sum <= sum_of_three(
          pairs_index == 3'd0 ? '0 : header_sum, 20'(low_pair), pairs_index == 3'd2 ? '0 : 20'(high_pair)
      );
    if (pairs_index != NO_HEADER)
      pseudo_sum <= sum_of_three(
          first_pseudo ? 20'({nanet_pkg::IP_PROTOCOL_UDP, 8'b0}) : pseudo_sum, first_pseudo ? '0 : 20'(low_pair), 20'(high_pair)
      );
  end

  logic refused, bad_length, empty, header_wrong, hit;
  logic [16:0] expected_bytes;  // of UDP, by the length of IPv4
  logic [TARGET_BITS-1:0] hit_target;

  match_table #(
      .ENTRIES(MATCH_ENTRIES),
      .TARGET_BITS(TARGET_BITS)
  ) wanted (
      .clk,
      .rst,
      .table_write,
      .table_index,
      .table_enable,
      .table_port,
      .table_source_address,
      .table_source_mask,
      .table_target,
      .port,
      .source_address,
      .hit,
      .hit_target
  );

  always_ff @(posedge clk) begin
    expected_bytes <= {1'b0, total_bytes} - 17'(nanet_pkg::IPV4_HEADER_BYTES);
    bad_length <= udp_bytes[15:3] == '0 || udp_bytes > 16'(UDP_BYTES_MAX) || {1'b0, udp_bytes} != expected_bytes;
    empty <= udp_bytes == 16'(nanet_pkg::UDP_HEADER_BYTES);
    header_wrong <= !is_ones(32'(header_sum));
    refused <= other_ethertype || other_version || options || fragment || other_protocol || other_address;
  end
  wire accepted = !(refused || header_wrong || bad_length || empty || !hit);

  // --- payload words from lane 0 on, trimmed to the UDP length, until the frame ends ---
  logic [16:0] left;  // of the payload, from the next word on; below zero after its end
  logic [7:0] keep;   // of the next word
  logic [63:0] word;
  logic [7:0] word_keep;
  logic word_first, begun, ends, ends_bad, rest, rest_bad;
  wire spills = s_axis_tkeep[7:4] != '0;
  wire s_ends = s_axis_tvalid && s_axis_tlast;
  wire s_payload = s_axis_tvalid && index == 3'd4;
  wire goes = s_payload || rest;
  // Eight bytes more than from the next word on: those of this word, or of the UDP header.
  wire [16:0] left_before = is_udp ? {1'b0, swapped(s_axis_tdata[15:0])} : left;

  always_ff @(posedge clk) begin
    if (goes || (s_axis_tvalid && is_udp)) begin
      left <= left_before - 17'd8;
      keep <= left_before[16] ? '0 : left_before[15:4] != '0 ? '1 : left_before[3] ? ~(8'hFF << left_before[2:0]) : '0;
    end
    for (int lane = 0; lane < 4; lane++) begin
      word[8*lane+:8] <= goes && keep[lane] ? previous[8*lane+:8] : '0;
      word[32+8*lane+:8] <= s_payload && keep[4+lane] ? s_axis_tdata[8*lane+:8] : '0;
    end
    word_keep <= goes ? keep : '0;
    word_first <= s_payload && !begun;
    if (s_payload) begun <= 1'b1;
    if (s_axis_tvalid && index == '0) begun <= 1'b0;
    rest <= s_ends && s_payload && spills;
    rest_bad <= s_axis_tuser;
    ends <= rest || (s_ends && !(s_payload && spills));
    ends_bad <= rest ? rest_bad : s_axis_tuser;
    if (rst) begin
      word_keep <= '0;
      rest <= 1'b0;
      ends <= 1'b0;
    end
  end

  // --- summed ---
  logic [19:0] word_sum;
  logic [31:0] payload_sum;
  always_ff @(posedge clk) begin
    word_sum <= halves_sum(word);
    payload_sum <= word_first ? 32'(pseudo_sum) : payload_sum + 32'(word_sum);
  end

  // --- one word is held back: the last waits for the end of the frame and for the sums ---
  logic [63:0] held_data;
  logic [7:0] held_keep;
  logic held_valid, truncated;
  logic taking, unwanted;  // what was said of the packet with its first word
  logic [1:0] ended;  // the end of the frame, one and two cycles later
  logic ended_bad, concludes_bad, concludes_faulty;
  logic [11:0] first_fault;
  wire takes = word_keep[0] && (word_first ? accepted : taking);
  wire concludes = ended[1];
  wire sum_wrong = !no_checksum && !is_ones(payload_sum);
  wire [11:0] faults = {
    truncated, unwanted, empty, bad_length, other_address, other_protocol, fragment, header_wrong, options, other_version, !begun,
    other_ethertype
  };

  always_ff @(posedge clk) begin
    ended <= rst ? '0 : {ended[0], ends};
    ended_bad <= ends_bad;
    truncated <= 16'(received_bytes) < total_bytes;
    concludes_bad <= ended_bad;
    concludes_faulty <= faults != '0;
    for (int fault = 0; fault < 12; fault++) first_fault[fault] <= faults[fault] && (faults & ~(12'hFFF << fault)) == '0;
    if (takes) begin
      held_data <= word;
      held_keep <= word_keep;
    end
    held_valid <= !rst && (takes || (held_valid && !concludes));
    if (word_first) begin
      taking <= accepted;
      unwanted <= !hit;
    end
    m_axis_tdata <= held_data;
    m_axis_tkeep <= held_keep;
    m_axis_tvalid <= !rst && held_valid && (takes || concludes);
    m_axis_tlast <= concludes;
    m_axis_tuser <= concludes && (concludes_bad || concludes_faulty || sum_wrong);
    if (word_first) begin
      m_meta_target <= hit_target;
      m_meta_source_address <= source_address;
      m_meta_source_port <= source_port;
      m_meta_payload_bytes <= udp_bytes - 16'(nanet_pkg::UDP_HEADER_BYTES);
      m_meta_start_cycle <= start_cycle;
    end
  end

  // --- one pulse a packet: the lowest fault is the one that counts ---
  assign for_replier = REPLIER && begun && !group_frame && (arp || (icmp && !(other_ethertype || other_version || options || header_wrong ||
                                                                              fragment || not_own)));
  wire judged = !rst && concludes && !concludes_bad && !for_replier;
  always_ff @(posedge clk) begin
    {drop_truncated, drop_no_match, drop_empty, drop_length, drop_address, drop_protocol, drop_fragment, drop_header_checksum, drop_options,
     drop_version, drop_short, drop_ethertype} <= judged ? first_fault : '0;
    drop_udp_checksum <= judged && !concludes_faulty && sum_wrong;
    count_good <= judged && !concludes_faulty && !sum_wrong;
  end

  // --- what must hold ---
  logic [LAST_CYCLES-1:0] last;
  logic [GAP_CYCLES-1:0] quiet;
  logic [15:0] bytes_out;  // of the packet, before this word
  always_ff @(posedge clk) begin
    last <= rst ? '0 : {last[LAST_CYCLES-2:0], rest || (s_ends && !(s_payload && spills))};
    quiet <= rst ? '0 : {quiet[GAP_CYCLES-2:0], s_ends};
    if (!rst) begin
      assert (!s_axis_tvalid || index != '0 || quiet == '0);
      assert (!s_axis_tvalid || s_axis_tlast || s_axis_tkeep == '1);
      assert (!m_axis_tvalid || !m_axis_tlast || last[LAST_CYCLES-1]);
      assert (!m_axis_tvalid || m_axis_tlast || m_axis_tkeep == '1);
      assert (!m_axis_tvalid || bytes_out + 16'(kept(m_axis_tkeep)) <= m_meta_payload_bytes);
      assert (!m_axis_tvalid || !m_axis_tlast || m_axis_tuser || bytes_out + 16'(kept(m_axis_tkeep)) == m_meta_payload_bytes);
      assert (!m_axis_tvalid || int'(m_meta_payload_bytes) <= PAYLOAD_BYTES_MAX);
    end
    if (m_axis_tvalid) bytes_out <= m_axis_tlast ? '0 : bytes_out + 16'd8;
    if (rst) bytes_out <= '0;
  end
endmodule
