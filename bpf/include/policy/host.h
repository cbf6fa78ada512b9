/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* Rules for what passes the node's own devices: which there are, and what they never cut. Layer: slow paths, XDP. */
#ifndef NP_POLICY_HOST_H
#define NP_POLICY_HOST_H

#include "policy/evaluate.h"

/* For the fast path, which may have no subprograms. */
static __always_inline struct host_sets *host_sets_at(__u32 ifindex, __u32 view)
{
	struct host_key k = {};

	k.ifindex = ifindex;
	k.view = view;
	return bpf_map_lookup_elem(&np_hosts, &k);
}

NP_PART struct host_sets *host_sets_of(__u32 ifindex, __u32 view)
{
	return host_sets_at(ifindex, view);
}

static __always_inline __u64 host_set(const struct host_sets *sets, __u32 slot)
{
	return ((const __u64 *)sets)[slot];
}

/* A port of the node's, or of others for the node, that policy never cuts? `peer`: the other end. */
static __noinline bool is_failsafe_port(__u32 direction, __u8 proto, __be16 port, const struct addr *peer)
{
	struct failsafe_key k = {};

	k.prefix = 32 + 128;
	k.direction = direction | (addr_is_v4(peer) ? 0 : FAILSAFE_V6);
	k.proto = proto;
	k.port = port;
	k.addr = *peer;
	return bpf_map_lookup_elem(&np_failsafes, &k);
}

/* Might it be? Seldom wrong, and much cheaper. */
static __always_inline bool is_spared(__u32 direction, __be16 port)
{
	__u32 slot = direction * FAILSAFE_PORTS + bpf_ntohs(port) % FAILSAFE_PORTS;
	__u32 *some = bpf_map_lookup_elem(&np_spared, &slot);

	return some && *some;
}

/* Is the packet sent to such a port: one of the node's (FAILSAFE_IN), or of another for the node? */
static __always_inline bool is_failsafe(__u8 proto, const struct ct_tuple *t, __u32 direction)
{
	return is_spared(direction, t->dport) &&
	       is_failsafe_port(direction, proto, t->dport, direction == FAILSAFE_IN ? &t->src : &t->dst);
}

/* May the packet be an answer? TCP's acknowledge something or reset, and none is a SYN without that; others do not
 * tell. */
static __always_inline bool may_be_answer(__u8 proto, __u8 tcp_flags)
{
	return proto != IPPROTO_TCP || tcp_flags & TCP_ACK || (tcp_flags & (TCP_SYN | TCP_RST)) == TCP_RST;
}

/* The same of one that was parsed. Without their first, which has the flags, fragments come to nothing. */
static __always_inline bool pkt_may_be_answer(const struct pkt *p)
{
	return p->fragment || (p->proto == IPPROTO_SCTP ? !p->asks : may_be_answer(p->proto, p->tcp_flags));
}

/* Are its ports such a port's when it answers: to this node (FAILSAFE_IN), or from it? */
static __always_inline bool is_failsafe_answer(__u8 proto, const struct ct_tuple *t, __u32 direction)
{
	__u32 theirs = direction == FAILSAFE_IN ? FAILSAFE_OUT : FAILSAFE_IN;

	return is_spared(theirs, t->sport) &&
	       is_failsafe_port(theirs, proto, t->sport, direction == FAILSAFE_IN ? &t->src : &t->dst);
}

#endif
