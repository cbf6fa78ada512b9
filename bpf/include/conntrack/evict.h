/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* Which flow makes room when the table is full: one that is over, or that only one end has sent packets of; where there
 * is no other, the one of both ends that has been idle longest. Layer: slow paths. */
#ifndef NP_CONNTRACK_EVICT_H
#define NP_CONNTRACK_EVICT_H

#include <linux/errno.h>
#include "base/scratch.h"

/* Flows that are looked at for one that makes room; fewer where verifiers look at each path. */
#define EVICT_TRIES (FOR_FLOOR ? 8 : 32)

/* Programs renew pressure.full_at no sooner than after this time. */
#define PRESSURE_NS 100000000ULL
/* For so long after that the table counts as full, though there may be room. */
#define FULL_NS 1000000000ULL

/* The next slot of np_recent: the one that was written longest ago, or nearly. Programs take slots by the block. */
static __always_inline __u32 recent_next(struct scratch *s)
{
	struct pressure *pressure;
	__u32 zero = 0;

	if (!s->recent_left) {
		pressure = bpf_map_lookup_elem(&np_pressure, &zero);
		if (!pressure)
			return 0;
		/* two that count at once may get the same block: the flows of one are not found there */
		__sync_fetch_and_add(&pressure->blocks, 1);
		s->recent_at = pressure->blocks * RECENT_BLOCK;
		s->recent_left = RECENT_BLOCK;
	}
	s->recent_left--;
	return s->recent_at++ & cfg.recent_mask;
}

static __always_inline bool same_ends(const struct ct_key *a, const struct ct_key *b)
{
	return addr_eq(&a->lo, &b->lo) && addr_eq(&a->hi, &b->hi) && a->lo_port == b->lo_port &&
	       a->hi_port == b->hi_port;
}

/* Is it the other entry of the translated flow at this key? */
static __always_inline bool is_pair(const struct ct_value *peer, const struct ct_key *of)
{
	struct ct_key other;

	if (!((peer->leg[0].flags | peer->leg[1].flags) & LEG_NAT))
		return false;
	ct_key_of(&other, &peer->out, of->proto);
	return same_ends(&other, of);
}

/* Takes out the flow `victim` and its other entry. The next flow has its slot of np_recent. Writes eviction. */
static __noinline void evict(struct scratch *s, const struct ct_value *v, __u32 slot)
{
	const bool translated = (v->leg[0].flags | v->leg[1].flags) & LEG_NAT;
	const struct ct_key own = s->eviction.victim;
	const struct ct_tuple out = v->out;
	const __u16 lane = v->lane;
	struct ct_value *peer;

	if (s->recent_free)
		s->recent_dead = s->recent_free;
	s->recent_free = slot + 1;
	bpf_map_delete_elem(&np_ct, &s->eviction.victim);
	count_slot(DROP_MAX + COUNT_EVICTED);
	if (!translated)
		return;
	ct_key_of(&s->eviction.victim, &out, own.proto);
	s->eviction.victim.lane = lane;
	peer = bpf_map_lookup_elem(&np_ct, &s->eviction.victim);
	if (peer && is_pair(peer, &own))
		bpf_map_delete_elem(&np_ct, &s->eviction.victim);
}

/* 1 where the number is another than 0. Without branches, as what follows: verifiers before 5.3 go each way of each
 * try by itself. */
static __always_inline __u32 is_set(__u32 number)
{
	return (number | -number) >> 31;
}

/* Has one end alone sent packets of it, is its TCP connection not open, or have the ends closed it (ct_closing)?
 * FlowReader says the same. */
static __always_inline bool is_evicted_first(const struct ct_value *v, __u8 proto)
{
	const __u32 state = v->state, dsr = is_set((v->leg[0].flags | v->leg[1].flags) & LEG_DSR);
	const __u32 both = is_set(state & CT_SEEN_LO) & is_set(state & CT_SEEN_HI);
	const __u32 lo = is_set(state & CT_FIN_LO), hi = is_set(state & CT_FIN_HI);
	const __u32 over = is_set(state & CT_RST) | (lo & hi) | ((lo | hi) & dsr);
	const __u32 answered = is_set(state & CT_TCP_OPEN) | (both & is_set(proto ^ IPPROTO_TCP));

	return (answered ^ 1) | over;
}

/* The table is full: a flow goes, of those that were entered longest ago as far as np_recent knows. `enough`: flows in
 * use that tell that all are. True: there is room for an entry. Writes eviction. */
NP_GLOBAL int make_room(__u32 enough)
{
	struct scratch *s = scratch_take();
	struct pressure *pressure;
	struct eviction *e;
	__u32 zero = 0, slot;
	struct ct_key *recent;
	struct ct_value *v;

	if (!s)
		return false;
	e = &s->eviction; /* what a loop has found is in memory: the verifier follows no number through it */
	e->idle = RECENT_FLOWS;
	e->found = 0;
	e->seen = ~0ULL;
	s->full_until = s->now + FULL_NS;
	pressure = bpf_map_lookup_elem(&np_pressure, &zero);
	if (pressure && s->now > pressure->full_at + PRESSURE_NS)
		pressure->full_at = s->now; /* wakes the agent */
	for (int i = 0; i < EVICT_TRIES; i++) {
		slot = recent_next(s);
		recent = bpf_map_lookup_elem(&np_recent, &slot);
		if (!recent)
			return false;
		e->victim = *recent;
		v = bpf_map_lookup_elem(&np_ct, &e->victim);
		if (!v) {
			s->recent_dead = slot + 1;
			continue;
		}
		/* an old key of the very flow, whose second entry the room is for */
		if (same_ends(&e->victim, &s->key))
			continue;
		if (is_evicted_first(v, e->victim.proto)) {
			evict(s, v, slot);
			return true;
		}
		e->found++;
		if (v->seen < e->seen) {
			e->seen = v->seen;
			e->idle = slot;
		}
	}
	/* in use: it goes only where all that were looked at are, and that many */
	if ((FOR_FLOOR || e->found < enough) && s->now < e->seen + 2 * CT_FRESH_NS)
		return false;
	slot = e->idle;
	recent = bpf_map_lookup_elem(&np_recent, &slot);
	if (!recent)
		return false;
	e->victim = *recent;
	v = bpf_map_lookup_elem(&np_ct, &e->victim);
	if (v)
		evict(s, v, slot);
	return true;
}

/* The slot is about to be written over. While flows find no room, its flow goes first if it is one of those that are
 * evicted first: it would be in no slot, and never make room. Writes eviction. */
static __noinline void leave_slot(struct scratch *s, const struct ct_key *recent, __u32 slot)
{
	const struct pressure *pressure;
	const struct ct_value *v;
	__u32 zero = 0;

	pressure = bpf_map_lookup_elem(&np_pressure, &zero);
	if (!pressure || s->now > pressure->full_at + FULL_NS || same_ends(recent, &s->key))
		return;
	s->eviction.victim = *recent;
	v = bpf_map_lookup_elem(&np_ct, &s->eviction.victim);
	if (!v || !is_evicted_first(v, s->eviction.victim.proto))
		return;
	evict(s, v, slot);
	s->recent_free = 0;
}

/* The flow at s->key takes a slot that no flow has, where one is known: in any other it would take the place of a flow
 * that is there, which no flow would find again. Writes eviction. */
NP_GLOBAL int recent_note(void)
{
	struct scratch *s = scratch_take();
	struct ct_key *recent;
	__u32 slot;

	if (!s)
		return 0;
	slot = (s->recent_free ? s->recent_free : s->recent_dead) - 1;
	if (s->recent_free)
		s->recent_free = 0;
	else
		s->recent_dead = 0;
	recent = bpf_map_lookup_elem(&np_recent, &slot);
	/* none is known, or another CPU has come round to it */
	if (!recent || bpf_map_lookup_elem(&np_ct, recent)) {
		slot = recent_next(s);
		recent = bpf_map_lookup_elem(&np_recent, &slot);
		if (recent && s->now < s->full_until)
			leave_slot(s, recent, slot);
	}
	if (recent)
		*recent = s->key;
	return 0;
}

/* Flows that come close behind each other are all in use: a look further on tells more. After that any flow goes. Such
 * a look finds none where all flows of its slots went by themselves: there are three. */
static __always_inline bool has_room(void)
{
	return make_room(EVICT_TRIES) || make_room(EVICT_TRIES) ||
	       (!FOR_FLOOR && (make_room(1) || make_room(1) || make_room(1)));
}

#endif
