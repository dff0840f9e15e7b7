// SPDX-License-Identifier: Apache-2.0
// Constants of the wire that more than one module needs. Two bytes of a header stand as they lie in a word: the first is the low one.
package nanet_pkg;
  // XGMII control characters.
  localparam logic [7:0] XGMII_IDLE = 8'h07;
  localparam logic [7:0] XGMII_START = 8'hFB;
  localparam logic [7:0] XGMII_TERMINATE = 8'hFD;
  localparam logic [7:0] XGMII_ERROR = 8'hFE;
  localparam logic [7:0] ETH_PREAMBLE = 8'h55;
  localparam logic [7:0] ETH_SFD = 8'hD5;
  localparam logic [63:0] XGMII_PREAMBLE = {ETH_SFD, {6{ETH_PREAMBLE}}, XGMII_START};  // the first byte is the control character

  localparam int ETH_FRAME_BYTES_MIN = 64;  // FCS included
  localparam int ETH_FCS_BYTES = 4;
  localparam int ETH_PREAMBLE_BYTES = 8;     // the start-of-frame delimiter included
  localparam int ETH_GAP_BYTES = 12;

  localparam logic [15:0] ETHERTYPE_IPV4 = 16'h0008;  // 0x0800
  localparam logic [15:0] ETHERTYPE_ARP = 16'h0608;   // 0x0806
  localparam logic [15:0] ETHERTYPE_VLAN = 16'h0081;  // 0x8100
  localparam logic [7:0] IP_PROTOCOL_ICMP = 8'd1;
  localparam logic [7:0] IP_PROTOCOL_UDP = 8'd17;
  localparam logic [7:0] IP_TTL = 8'd64;  // of what is sent
  localparam int IPV4_HEADER_BYTES = 20;
  localparam int IPV4_GROUP_BITS = 28;  // of a group's address, less what all begin with
  localparam logic [3:0] IPV4_GROUP_PREFIX = 4'hE;
  // The Ethernet address of a group ends with the last bits of its IPv4 address, and 32 groups have the same (RFC 1112).
  localparam int MAC_GROUP_BITS = 23;
  localparam logic [24:0] MAC_GROUP_PREFIX = {24'h01005E, 1'b0};  // as one writes it
  localparam int UDP_HEADER_BYTES = 8;
endpackage
