/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* Addresses of both families in one 16-byte type: make, compare, hash, sum. Layer: shared by all programs. */
#ifndef NP_BASE_ADDR_H
#define NP_BASE_ADDR_H

#include "base/compat.h"

#define MAPPED_WORD bpf_htonl(0xffff)

static __always_inline void addr_from_v4(struct addr *a, __be32 v4)
{
	a->w[0] = 0;
	a->w[1] = 0;
	a->w[2] = MAPPED_WORD;
	a->w[3] = v4;
}

static __always_inline void addr_from_v6(struct addr *a, const __be32 *v6)
{
	a->w[0] = v6[0];
	a->w[1] = v6[1];
	a->w[2] = v6[2];
	a->w[3] = v6[3];
}

static __always_inline void addr_to_v6(__be32 *v6, const struct addr *a)
{
	v6[0] = a->w[0];
	v6[1] = a->w[1];
	v6[2] = a->w[2];
	v6[3] = a->w[3];
}

static __always_inline bool addr_is_v4(const struct addr *a)
{
	return a->w[0] == 0 && a->w[1] == 0 && a->w[2] == MAPPED_WORD;
}

static __always_inline bool addr_is_zero(const struct addr *a)
{
	return (a->w[0] | a->w[1] | a->w[2] | a->w[3]) == 0;
}

static __always_inline bool addr_is_multicast(const struct addr *a, bool v4)
{
	if (v4)
		return (a->w[3] & bpf_htonl(0xf0000000)) == bpf_htonl(0xe0000000) || a->w[3] == 0xffffffff;
	return (a->w[0] & bpf_htonl(0xff000000)) == bpf_htonl(0xff000000);
}

/* fe80::/10 */
static __always_inline bool addr_is_link_local(const struct addr *a)
{
	return (a->w[0] & bpf_htonl(0xffc00000)) == bpf_htonl(0xfe800000);
}

/* 127/8, ::1; and 0/8, :: , which name no host but by which a kernel means itself */
static __always_inline bool addr_is_inner(const struct addr *a, bool v4)
{
	const __be32 net = a->w[3] & bpf_htonl(0xff000000);

	if (v4)
		return net == bpf_htonl(0x7f000000) || net == 0;
	return (a->w[0] | a->w[1] | a->w[2]) == 0 && (a->w[3] == 0 || a->w[3] == bpf_htonl(1));
}

static __always_inline bool addr_eq(const struct addr *a, const struct addr *b)
{
	return a->w[3] == b->w[3] && a->w[2] == b->w[2] && a->w[1] == b->w[1] && a->w[0] == b->w[0];
}

/* the family's any-address, as node port frontends have it */
static __always_inline void addr_any(struct addr *a, bool v4)
{
	a->w[0] = 0;
	a->w[1] = 0;
	a->w[2] = v4 ? MAPPED_WORD : 0;
	a->w[3] = 0;
}

/* This node's own address of the family; zero when it has none. Knobs are volatile, so copied word by word. */
static __always_inline void addr_of_node(struct addr *a, bool v4)
{
	if (v4) {
		addr_from_v4(a, cfg.node_v4.w[3]);
		return;
	}
	a->w[0] = cfg.node_v6.w[0];
	a->w[1] = cfg.node_v6.w[1];
	a->w[2] = cfg.node_v6.w[2];
	a->w[3] = cfg.node_v6.w[3];
}

static __always_inline __u32 mix(__u32 h, __u32 word)
{
	h ^= word;
	h *= 0x85ebca6b;
	return h ^ h >> 15;
}

static __always_inline __u32 mix_addr(__u32 h, const struct addr *a)
{
	return mix(mix(mix(mix(h, a->w[0]), a->w[1]), a->w[2]), a->w[3]);
}

/* The last step of a hash: each of its bits depends on all that was mixed. */
static __always_inline __u32 mix_end(__u32 h)
{
	h ^= h >> 13;
	h *= 0xc2b2ae35;
	return h ^ h >> 16;
}

/* One's complement difference new - old of one word, to be added up and folded. */
static __always_inline __u64 sum_diff(__be32 old, __be32 new)
{
	return (__u64)(__u32)~old + new;
}

static __always_inline __u64 addr_diff(const struct addr *old, const struct addr *new, bool v4)
{
	__u64 sum = sum_diff(old->w[3], new->w[3]);

	if (v4)
		return sum;
	return sum + sum_diff(old->w[2], new->w[2]) + sum_diff(old->w[1], new->w[1]) + sum_diff(old->w[0], new->w[0]);
}

static __always_inline __u32 sum_fold32(__u64 sum)
{
	sum = (sum & 0xffffffff) + (sum >> 32);
	sum = (sum & 0xffffffff) + (sum >> 32);
	return sum;
}

static __always_inline __u16 sum_fold16(__u64 sum)
{
	__u32 s = sum_fold32(sum);

	s = (s & 0xffff) + (s >> 16);
	s = (s & 0xffff) + (s >> 16);
	return s;
}

#endif
