/* SPDX-License-Identifier: Apache-2.0 */
/* What the XDP program is told by the link that loads it. C, for both. */
#ifndef NANET_LINK_XDP_STEER_H
#define NANET_LINK_XDP_STEER_H

#include <linux/types.h>

struct SteerConfig {
  __be32 address[4]; /* of IPv6; of IPv4 the first; 0: any */
  __be16 port;
  __u16 is_ipv6;
};

#endif
