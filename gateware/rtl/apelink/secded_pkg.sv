// SPDX-License-Identifier: Apache-2.0
// The code of APEnet+ headers. Written by gateware/scripts/make_secded_pkg.py: change that, not this.
package secded_pkg;
  // Check bit c is the parity of data & MASK[120*c +: 120].
  localparam logic [839:0] MASK = {
    120'hFFFFFFFFFFFFFFFE00000000000000,
    120'hFFFFFFFF00000001FFFFFFFC000000,
    120'hFFFF0000FFFF0001FFFE0003FFF800,
    120'hFF00FF00FF00FF01FE01FE03FC07F0,
    120'hF0F0F0F0F0F0F0F1E1E1E1E3C3C78E,
    120'hCCCCCCCCCCCCCCCD9999999B33366D,
    120'hAAAAAAAAAAAAAAAB55555556AAAD5B
  };
  // The check bits that data bit i stands in are those of COLUMN[7*i +: 7].
  localparam logic [839:0] COLUMN = {
    7'd127, 7'd126, 7'd125, 7'd124, 7'd123, 7'd122, 7'd121, 7'd120, 7'd119, 7'd118, 7'd117, 7'd116, 7'd115, 7'd114, 7'd113,
    7'd112, 7'd111, 7'd110, 7'd109, 7'd108, 7'd107, 7'd106, 7'd105, 7'd104, 7'd103, 7'd102, 7'd101, 7'd100, 7'd99, 7'd98,
    7'd97, 7'd96, 7'd95, 7'd94, 7'd93, 7'd92, 7'd91, 7'd90, 7'd89, 7'd88, 7'd87, 7'd86, 7'd85, 7'd84, 7'd83,
    7'd82, 7'd81, 7'd80, 7'd79, 7'd78, 7'd77, 7'd76, 7'd75, 7'd74, 7'd73, 7'd72, 7'd71, 7'd70, 7'd69, 7'd68,
    7'd67, 7'd66, 7'd65, 7'd63, 7'd62, 7'd61, 7'd60, 7'd59, 7'd58, 7'd57, 7'd56, 7'd55, 7'd54, 7'd53, 7'd52,
    7'd51, 7'd50, 7'd49, 7'd48, 7'd47, 7'd46, 7'd45, 7'd44, 7'd43, 7'd42, 7'd41, 7'd40, 7'd39, 7'd38, 7'd37,
    7'd36, 7'd35, 7'd34, 7'd33, 7'd31, 7'd30, 7'd29, 7'd28, 7'd27, 7'd26, 7'd25, 7'd24, 7'd23, 7'd22, 7'd21,
    7'd20, 7'd19, 7'd18, 7'd17, 7'd15, 7'd14, 7'd13, 7'd12, 7'd11, 7'd10, 7'd9, 7'd7, 7'd6, 7'd5, 7'd3
  };
endpackage
