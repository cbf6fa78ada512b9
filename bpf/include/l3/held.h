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
#define HELD_PLACES 64      /* of all datagrams of pods, and of all others; each takes its memory, used or not */

/* Whose part of what. */
struct held_id {
	struct frag_key datagram;
	__u32 device; /* by which they come in again: one that came by another is another sender's */
	__u32 part;
};

struct held {
	struct held_id id;
	__u64 since;
	__u64 length;
	__u8 bytes[HELD_BYTES];
};
_Static_assert(sizeof(struct held) <= sizeof(struct cut), "the held packet is put together there");

/* Each object's own: first the network's places, then those of pods. A datagram's parts have the places from its hash
 * on; one that is another's is taken, which bounds what strangers can leave here. No LRU: before Linux 6.16 one CPU
 * would have all of so few places. */
NP_TABLE(np_held, __u32, struct held, 2 * HELD_PLACES);

static __always_inline __u32 held_place(__u32 hash, __u32 part, const struct scratch *s)
{
	return (hash + part) % HELD_PLACES + (s->hook == FROM_WORKLOAD ? HELD_PLACES : 0);
}

static __always_inline __u32 held_id_of(struct held_id *id, struct __sk_buff *skb, const struct scratch *s)
{
	__builtin_memset(id, 0, sizeof(*id));
	id->datagram = s->walk.frag;
	id->device = skb->ifindex;
	return mix_end(mix_addr(mix_addr(mix(id->datagram.id, id->device), &id->datagram.src), &id->datagram.dst));
}

/* What waits at the place as this part of the datagram; 0: nothing. Writes the part. */
static __always_inline struct held *held_part(struct held_id *id, __u32 part, const __u32 *place, __u64 now)
{
	const __u64 *mine = (const void *)id, *its;
	struct held *held;
	__u64 other = 0;

	id->part = part;
	held = bpf_map_lookup_elem(&np_held, place);
	if (!held)
		return 0;
	its = (const void *)&held->id;
#pragma unroll
	for (__u32 i = 0; i < sizeof(*id) / sizeof(*its); i++)
		other |= its[i] ^ mine[i];
	/* another CPU may have held it after this one looked at the clock */
	return other || (now > held->since && now - held->since > HELD_NS) ? 0 : held;
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
	struct held *held;
	struct cut *cut;
	__u32 zero = 0, hash, place;

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
	hash = held_id_of(&held->id, skb, s);
#pragma unroll
	for (int i = 0; i < HELD_PARTS; i++) {
		place = held_place(hash, i, s);
		if (!held_part(&held->id, i, &place, s->now)) {
			count_slot(DROP_MAX + COUNT_FRAGMENT_HELD);
			return !bpf_map_update_elem(&np_held, &place, held, BPF_ANY);
		}
	}
	return false;
}

/* The first fragment is here, and noted: if others wait it comes in again, and they behind it. The packet is then the
 * last of them, and has done its part. Reads walk.frag. */
static __noinline bool fragments_release(struct __sk_buff *skb, struct scratch *s)
{
	struct held *held;
	struct held_id id;
	__u32 hash = held_id_of(&id, skb, s), place = held_place(hash, 0, s), next = held_place(hash, 1, s);
	__u64 length;

	/* a part's place may be another's by now; hardly those of two */
	if (!held_part(&id, 0, &place, s->now) && !held_part(&id, 1, &next, s->now))
		return false;
	if (is_nodes_datagram(s) || bpf_clone_redirect(skb, skb->ifindex, BPF_F_INGRESS))
		return false;
#pragma unroll
	for (int i = 0; i < HELD_PARTS; i++) {
		place = held_place(hash, i, s);
		held = held_part(&id, i, &place, s->now);
		if (!held)
			continue;
		length = held->length - 1;
		CUT_BOUND(length);
		if (length < HELD_BYTES && !bpf_skb_change_tail(skb, length + 1, 0) &&
		    !bpf_skb_store_bytes(skb, 0, held->bytes, length + 1, BPF_F_RECOMPUTE_CSUM))
			bpf_clone_redirect(skb, skb->ifindex, BPF_F_INGRESS);
		bpf_map_delete_elem(&np_held, &place);
	}
	return true;
}

#endif
