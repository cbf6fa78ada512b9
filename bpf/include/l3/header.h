/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* IP headers of packets that we make. Layer: tc programs. */
#ifndef NP_L3_HEADER_H
#define NP_L3_HEADER_H

#include "base/pkt.h"

#define OWN_TTL 64

/* The two lowest bits of a traffic class (RFC 3168). */
enum ecn {
	ECN_NONE, /* the sender does not understand marks */
	ECN_ECT1,
	ECN_ECT0,
	ECN_CONGESTED,
	ECN_MASK = 3,
};

/* Of an IP header's first two bytes, in host order. */
static __always_inline __u32 class_shift(bool v4)
{
	return v4 ? 0 : 4;
}

static __always_inline __u8 traffic_class(const void *ip, bool v4)
{
	return bpf_ntohs(*(const __be16 *)ip) >> class_shift(v4);
}

/* `length` of the whole packet, `fragment` as in the header: both in network order. `class`: TOS, ECN in it. */
static __always_inline void ipv4_fill(struct iphdr *ip, __u8 class, __be16 length, __be16 fragment, __u8 proto,
				      __be32 src, __be32 dst)
{
	const __be16 start = bpf_htons(0x4500 | class), ttl_proto = bpf_htons(OWN_TTL << 8 | proto);

	*(__be16 *)ip = start;
	ip->tot_len = length;
	ip->id = 0;
	ip->frag_off = fragment;
	*(__be16 *)&ip->ttl = ttl_proto;
	ip->check = ~sum_fold16((__u64)start + length + fragment + ttl_proto + src + dst);
	ip->saddr = src;
	ip->daddr = dst;
}

/* `length` of what follows it, in network order. */
static __always_inline void ipv6_fill(struct ipv6hdr *ip, __u8 class, __be16 length, __u8 proto, const struct addr *src,
				      const struct addr *dst)
{
	*(__be32 *)ip = bpf_htonl(0x60000000 | (__u32) class << 20);
	ip->payload_len = length;
	ip->nexthdr = proto;
	ip->hop_limit = OWN_TTL;
	addr_to_v6(ip->saddr.in6_u.u6_addr32, src);
	addr_to_v6(ip->daddr.in6_u.u6_addr32, dst);
}

#endif
