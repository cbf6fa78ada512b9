/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* Source ports of flows that need another than their own: those kept for this, which the node's own sockets do not use.
 * Layer: slow paths. */
#ifndef NP_CONNTRACK_PORTS_H
#define NP_CONNTRACK_PORTS_H

#include "base/scratch.h"

#define PORT_TRIES 32
#define PORT_NEIGHBOURS 16 /* of them next to each other, before those anywhere */
#define PORT_TURNS 4096    /* a power of two */

/* How far destinations have come round the ports, by their hash: each object's own, and lost with the programs. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, PORT_TURNS);
	__type(key, __u32);
	__type(value, __u32);
} np_port_turns SEC(".maps");

/* `by` turns on, whose turn it is. TCP's ports come round in order, for the far end may remember a connection for a
 * minute (TIME_WAIT). Of others nothing is remembered, and any port is harder to guess. Reads draft.v.out. */
static __noinline __u32 port_turn(struct scratch *s, __u32 by)
{
	const struct ct_tuple *out = &s->draft.v.out;
	__u32 slot, *turn;

	if (!HAS_PORT_SHARES || s->p.proto != IPPROTO_TCP)
		return bpf_get_prandom_u32();
	slot = mix_end(mix(mix_addr(0, &out->dst), out->dport)) & (PORT_TURNS - 1);
	turn = bpf_map_lookup_elem(&np_port_turns, &slot);
	if (!turn)
		return bpf_get_prandom_u32();
	if (!*turn)
		*turn = bpf_get_prandom_u32();
	__sync_fetch_and_add(turn, by);
	return *turn;
}

/* Whose share it is: a pod's, or that of a host in the network, which has all addresses of its /64. */
static __always_inline __u32 port_client(const struct scratch *s)
{
	const struct addr *a = &s->p.t.src;
	__u32 h = mix(mix(0, a->w[0]), a->w[1]);

	return s->p.v4 || s->hook == FROM_WORKLOAD ? mix(mix(h, a->w[2]), a->w[3]) : h;
}

/* The client's port for a turn. A client never uses one of each four ports in a row; which one depends on its address.
 * So a client that holds all of its ports leaves a quarter of them free. An echo has its id in both ports.
 * Writes draft.v.out. */
static __always_inline void port_set(struct scratch *s, __u32 client, __u32 turn)
{
	struct ct_tuple *out = &s->draft.v.out;
	const __u32 count = cfg.nat_port_count ? cfg.nat_port_count : 1;
	__u32 at = turn, row, column;

	if (HAS_PORT_SHARES) {
		at %= (count + 3) / 4 * 3;
		row = at / 3;
		column = at % 3;
		if (column >= (mix_end(mix(client, row)) & 3))
			column++;
		at = row * 4 + column;
	}
	out->sport = bpf_htons(cfg.nat_port_min + at % count);
	if (s->p.proto == IPPROTO_ICMP || s->p.proto == IPPROTO_ICMPV6)
		out->dport = out->sport;
}

/* Takes the next port in turn, which has most likely been free for longest. Writes draft.v.out. */
static __always_inline void port_change(struct scratch *s)
{
	port_set(s, port_client(s), port_turn(s, 1));
}

/* Looks for a port that no flow to this backend uses: among the next in turn, then by chance. The last port that was
 * tried may be in use. A port does not change the order of the key's addresses, unless both addresses are the same;
 * then either order serves. Writes draft.v.out, draft.peer_key. */
NP_GLOBAL int port_find(__u32 dir)
{
	struct scratch *s = scratch_take();
	__u32 client, turn;
	struct ct_key *k;

	if (!s)
		return 0;
	k = &s->draft.peer_key;
	client = port_client(s);
	turn = port_turn(s, 0);
	for (__u32 i = 1; i <= PORT_TRIES; i++) {
		port_set(s, client, HAS_PORT_SHARES && i <= PORT_NEIGHBOURS ? turn + i : bpf_get_prandom_u32());
		if (dir || s->draft.v.out.dport == s->draft.v.out.sport)
			k->lo_port = s->draft.v.out.sport;
		if (!dir || s->draft.v.out.dport == s->draft.v.out.sport)
			k->hi_port = s->draft.v.out.sport;
		if (bpf_map_lookup_elem(&np_ct, k))
			continue;
		if (HAS_PORT_SHARES && i <= PORT_NEIGHBOURS)
			port_turn(s, i);
		break;
	}
	return 0;
}

#endif
