/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* Rules for what passes the node's own devices: which there are, and what they never cut. Layer: slow paths, XDP. */
#ifndef NP_HOSTS_H
#define NP_HOSTS_H

#include "policy.h"

NP_PART struct host_sets *host_sets_of(__u32 ifindex, __u32 view)
{
	struct host_key k = {};

	k.ifindex = ifindex;
	k.view = view;
	return bpf_map_lookup_elem(&np_hosts, &k);
}

static __always_inline __u64 host_set(const struct host_sets *sets, __u32 slot)
{
	return ((const __u64 *)sets)[slot];
}

/* A port of the node's, or of others for the node, that policy never cuts? */
static __noinline bool is_failsafe(__u8 proto, const struct ct_tuple *t, __u32 direction)
{
	struct failsafe_key k = {};

	k.prefix = 32 + 128;
	k.addr = direction == FAILSAFE_IN ? t->src : t->dst;
	k.direction = direction | (addr_is_v4(&k.addr) ? 0 : FAILSAFE_V6);
	k.proto = proto;
	k.port = t->dport;
	return bpf_map_lookup_elem(&np_failsafes, &k);
}

#endif
