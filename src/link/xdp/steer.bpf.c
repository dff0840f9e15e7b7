// SPDX-License-Identifier: Apache-2.0
// The XDP program of link/xdp: UDP packets for the configured address and port go to the AF_XDP socket of their queue, all others to the
// kernel, which does not notice that this program is there. Runs in the kernel; built by back_end.cmake.
//
// A packet is taken when it is IP of the configured version after at most two VLAN tags, UDP, not a fragment, and for address and port; with
// IPv6, UDP must follow the first header. One that would be taken but came on a queue without a socket goes to the kernel too, and is counted in
// `missed`.
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/udp.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "steer.h"

const volatile struct SteerConfig config = {};  // written before the program is loaded, constant for the kernel's compiler

struct {
  __uint(type, BPF_MAP_TYPE_XSKMAP);
  __uint(max_entries, 1);  // set before loading: queues of the interface
  __type(key, __u32);
  __type(value, __u32);
} sockets SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(map_flags, BPF_F_MMAPABLE);  // read without a system call, so also by a process that gave its privileges up
  __uint(max_entries, 1);
  __type(key, __u32);
  __type(value, __u64);
} missed SEC(".maps");

struct VlanTag {
  __be16 tag;
  __be16 type;
};

static __always_inline int is_vlan(__be16 type) {
  return type == bpf_htons(0x8100) || type == bpf_htons(0x88A8) || type == bpf_htons(0x9100);
}

static __always_inline int is_our_port(const void* next, const void* end) {
  const struct udphdr* udp = next;
  if ((const void*)(udp + 1) > end) return 0;
  return udp->dest == config.port;
}

static __always_inline int is_our_ipv4(const void* next, const void* end) {
  const struct iphdr* ip = next;
  if ((const void*)(ip + 1) > end) return 0;
  if (ip->version != 4 || ip->ihl < 5 || ip->protocol != IPPROTO_UDP) return 0;
  if (ip->frag_off & bpf_htons(0x3FFF)) return 0;  // offset or "more fragments"
  if (config.address[0] != 0 && ip->daddr != config.address[0]) return 0;
  return is_our_port(next + ip->ihl * 4, end);
}

static __always_inline int is_our_ipv6(const void* next, const void* end) {
  const struct ipv6hdr* ip = next;
  if ((const void*)(ip + 1) > end) return 0;
  if (ip->version != 6 || ip->nexthdr != IPPROTO_UDP) return 0;
  const __be32 any = config.address[0] | config.address[1] | config.address[2] | config.address[3];
  __be32 other = 0;
#pragma unroll
  for (int i = 0; i < 4; ++i) other |= ip->daddr.in6_u.u6_addr32[i] ^ config.address[i];
  if (any != 0 && other != 0) return 0;
  return is_our_port(ip + 1, end);
}

static __always_inline int is_ours(const struct xdp_md* context) {
  const void* end = (const void*)(long)context->data_end;
  const struct ethhdr* ethernet = (const void*)(long)context->data;
  if ((const void*)(ethernet + 1) > end) return 0;
  __be16 type = ethernet->h_proto;
  const void* next = ethernet + 1;
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    if (is_vlan(type)) {
      const struct VlanTag* tag = next;
      if ((const void*)(tag + 1) > end) return 0;
      type = tag->type;
      next = tag + 1;
    }
  }
  if (config.is_ipv6) return type == bpf_htons(ETH_P_IPV6) && is_our_ipv6(next, end);
  return type == bpf_htons(ETH_P_IP) && is_our_ipv4(next, end);
}

static __always_inline int steer_packet(const struct xdp_md* context) {
  if (!is_ours(context)) return XDP_PASS;
  const int action = bpf_redirect_map(&sockets, context->rx_queue_index, XDP_PASS);
  if (action == XDP_PASS) {
    const __u32 zero = 0;
    __u64* count = bpf_map_lookup_elem(&missed, &zero);
    if (count) __sync_fetch_and_add(count, 1);
  }
  return action;
}

SEC("xdp")
int steer(struct xdp_md* context) { return steer_packet(context); }

// The same for packets that lie in several buffers of the driver (kernel 5.18): the headers are in the first.
SEC("xdp.frags")
int steer_frags(struct xdp_md* context) { return steer_packet(context); }

const char licence[] SEC("license") = "Apache-2.0";  // no helper used here is for GPL programs only
