// SPDX-License-Identifier: Apache-2.0
// Both halves of the headers' code with wrong bits between them, and the bits by which the header's struct names them.
module bench_top (
    input  logic [119:0] data,
    input  logic [127:0] flips,
    output logic [127:0] word,
    output logic [119:0] decoded,
    output logic         corrected,
    output logic         failed,
    output logic [119:0] named     // of `data`, put together anew from the struct's fields
);
  secded_encode i_encode (.*);
  secded_decode i_decode (
      .word(word ^ flips),
      .data(decoded),
      .corrected,
      .failed
  );

  apenet_pkg::header_t header;
  assign header = data;
  assign named = {
    header.hops,
    header.address,
    header.bytes,
    header.packet_type,
    header.out_of_lattice,
    header.reserved,
    header.port,
    header.z,
    header.y,
    header.x,
    header.process,
    header.vc
  };
endmodule
