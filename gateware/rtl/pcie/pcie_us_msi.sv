// SPDX-License-Identifier: Apache-2.0
// Interrupts by MSI through the UltraScale+ PCIe block, never before the writes that they tell of: each waits until the block says, by sequence numbers,
// that the last piece of a write that was taken before it is in order on the link.
//
// Contract
//   * `irq`, a pulse: one message, vector 0. Pulses that come while one waits make one more together.
//   * While MSI is not enabled pulses are forgotten: such a driver polls. A message that the block could not send (msi_fail) is sent again.
module pcie_us_msi (
    input logic clk,
    input logic rst,

    input logic       irq,
    input logic [5:0] written_pieces,  // of pcie_us_rq, which numbers its packets with it

    input logic [5:0] pcie_rq_seq_num0,
    input logic       pcie_rq_seq_num_vld0,

    input  logic        cfg_interrupt_msi_enable,
    output logic [31:0] cfg_interrupt_msi_int,
    input  logic        cfg_interrupt_msi_sent,
    input  logic        cfg_interrupt_msi_fail
);
  localparam logic [5:0] NEAR = 6'd8;  // so many numbers from the one that is waited for count as behind it

  typedef enum logic [1:0] {IDLE, BEHIND, SEND, SENT} state_t;
  state_t state;
  logic waits;             // for a message of its own
  logic [5:0] seen;        // the newest number that came back
  logic [5:0] target;
  wire [5:0] now_seen = pcie_rq_seq_num_vld0 ? pcie_rq_seq_num0 : seen;
  wire [5:0] beyond = now_seen - target;

  assign cfg_interrupt_msi_int = {31'd0, state == SEND};

  always_ff @(posedge clk) begin
    seen <= now_seen;
    if (irq) waits <= 1'b1;
    unique case (state)
      IDLE: if (waits) begin
        waits <= irq;
        target <= written_pieces;
        state <= BEHIND;
      end
      BEHIND: if (beyond < NEAR) state <= SEND;
      SEND: state <= SENT;
      SENT: begin
        if (cfg_interrupt_msi_sent) state <= IDLE;
        if (cfg_interrupt_msi_fail) state <= SEND;
      end
    endcase
    if (!cfg_interrupt_msi_enable) begin
      waits <= 1'b0;
      state <= IDLE;
    end
    if (rst) begin
      waits <= 1'b0;
      state <= IDLE;
      seen <= '0;
    end
  end
endmodule
