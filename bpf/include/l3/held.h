/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* Fragments that overtake their first, which alone has ports: their bytes wait for it, and come in again behind it.
 * Layer: slow paths. */
#ifndef NP_L3_HELD_H
#define NP_L3_HELD_H

#include "base/parse.h"
#include "lb/service.h"
#include "l3/fragment.h"

#define HELD_NS SECOND_NS   /* another datagram with the same id may be on its way after that */
#define HELD_BYTES CUT_MOST /* a frame of an MTU of 9,000, and more */
#define HELD_PARTS 8        /* of a datagram */
#define HELD_PLACES 64      /* of all datagrams; each takes its memory, used or not */

struct held_key {
	struct frag_key datagram;
	__u32 device; /* by which they come in again: one that came by another is another sender's */
	__u32 slot;
};

struct held {
	__u64 since;
	__u64 length;
	__u8 bytes[HELD_BYTES];
};
_Static_assert(sizeof(struct held) <= sizeof(struct cut), "the held packet is put together there");

/* Each object's own; eviction bounds what strangers can leave here. */
NP_LRU(np_held, struct held_key, struct held, HELD_PLACES);

static __always_inline void held_key_of(struct held_key *k, struct __sk_buff *skb, const struct scratch *s)
{
	__builtin_memset(k, 0, sizeof(*k));
	k->datagram = s->walk.frag;
	k->device = skb->ifindex;
}

/* May a program send the datagram on? Then its first fragment passes here. What came in the tunnel is in order: the
 * node that sent it has waited. Reads walk.frag. */
static __always_inline bool is_awaited(const struct scratch *s)
{
	struct addr_info *info;

	if (!hook_is_from(s->hook) || s->p.tunnelled)
		return false;
	if (s->hook == FROM_WORKLOAD)
		return true;
	info = bpf_map_lookup_elem(&np_addrs, &s->p.t.dst);
	if (!info)
		return own_prefix(false) & PREFIX_NODE_PORTS;
	return (info->kind == ADDR_LOCAL_POD || info->kind == ADDR_SERVICE || info->flags & ADDR_EXTERNAL ||
		(info->kind == ADDR_SELF && info->flags & ADDR_NODE_PORTS));
}

/* Is the datagram, whose first fragment this is, the node's own? Then the kernel has the others already. */
static __noinline bool is_nodes_datagram(const struct scratch *s)
{
	struct addr_info *info = bpf_map_lookup_elem(&np_addrs, &s->p.t.dst);

	return info && info->kind == ADDR_SELF && !frontend_of_node(&s->p.t.dst, s->p.t.dport, s->p.proto, info);
}

/* Keeps the packet's bytes. Reads walk.frag. */
static __noinline bool fragment_hold(struct __sk_buff *skb, struct scratch *s)
{
	__u64 length = skb->len;
	struct held *held, *known;
	struct held_key k;
	struct cut *cut;
	__u32 zero = 0;

	cut = bpf_map_lookup_elem(&np_cut, &zero);
	if (!cut || length > HELD_BYTES)
		return false;
	length--;
	CUT_BOUND(length);
	held = (void *)cut->bytes;
	if (bpf_skb_load_bytes(skb, 0, held->bytes, length + 1))
		return false;
	held->since = s->now;
	held->length = length + 1;
	held_key_of(&k, skb, s);
#pragma unroll
	for (int i = 0; i < HELD_PARTS; i++) {
		k.slot = i;
		known = bpf_map_lookup_elem(&np_held, &k);
		if (!known || s->now - known->since > HELD_NS) {
			count_slot(DROP_MAX + COUNT_FRAGMENT_HELD);
			return !bpf_map_update_elem(&np_held, &k, held, BPF_ANY);
		}
	}
	return false;
}

/* The first fragment is here, and noted: if others wait it comes in again, and they behind it. The packet is then the
 * last of them, and has done its part. Reads walk.frag. */
static __noinline bool fragments_release(struct __sk_buff *skb, struct scratch *s)
{
	struct held_key k;
	struct held *held;
	__u64 length;

	held_key_of(&k, skb, s);
	held = bpf_map_lookup_elem(&np_held, &k);
	if (!held || s->now - held->since > HELD_NS || is_nodes_datagram(s) ||
	    bpf_clone_redirect(skb, skb->ifindex, BPF_F_INGRESS))
		return false;
#pragma unroll
	for (int i = 0; i < HELD_PARTS; i++) {
		k.slot = i;
		held = bpf_map_lookup_elem(&np_held, &k);
		if (!held)
			break;
		length = held->length - 1;
		CUT_BOUND(length);
		if (length < HELD_BYTES && s->now - held->since <= HELD_NS &&
		    !bpf_skb_change_tail(skb, length + 1, 0) &&
		    !bpf_skb_store_bytes(skb, 0, held->bytes, length + 1, BPF_F_RECOMPUTE_CSUM))
			bpf_clone_redirect(skb, skb->ifindex, BPF_F_INGRESS);
		bpf_map_delete_elem(&np_held, &k);
	}
	return true;
}

#endif
