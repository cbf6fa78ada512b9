/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* Which flow makes room when the table is full: one that is over, or that only one end has sent packets of; an idle one
 * of both ends where there is no other. Layer: slow paths. */
#ifndef NP_CONNTRACK_EVICT_H
#define NP_CONNTRACK_EVICT_H

#include <linux/errno.h>
#include "base/scratch.h"

/* Flows that are looked at for one that makes room. */
#define EVICT_TRIES 8

/* How long the table is known to be full, at most, before that is said again. */
#define PRESSURE_NS 100000000ULL

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

static __always_inline void recent_note(struct scratch *s, const struct ct_key *key)
{
	__u32 slot = recent_next(s);
	struct ct_key *recent = bpf_map_lookup_elem(&np_recent, &slot);

	if (recent)
		*recent = *key;
}

/* Takes out the flow `victim` and its other entry; the next flow has its slot of np_recent. Writes victim. */
static __noinline void evict(struct scratch *s, const struct ct_value *v)
{
	const bool translated = (v->leg[0].flags | v->leg[1].flags) & LEG_NAT;
	struct ct_tuple out = v->out;
	const __u16 lane = v->lane;

	s->recent_at--;
	s->recent_left++;
	bpf_map_delete_elem(&np_ct, &s->victim);
	count_slot(DROP_MAX + COUNT_EVICTED);
	if (!translated)
		return;
	ct_key_of(&s->victim, &out, s->victim.proto);
	s->victim.lane = lane;
	bpf_map_delete_elem(&np_ct, &s->victim);
}

/* Has one end alone sent packets of it, or have the ends closed it (ct_closing)? Of DSR's connections the client's
 * acknowledgement tells that they are answered. Without branches: verifiers before 5.3 go each way of each try. */
static __always_inline bool is_evicted_first(const struct ct_value *v)
{
	const __u32 state = v->state, dsr = (v->leg[0].flags | v->leg[1].flags) & LEG_DSR;
	const __u32 answered = (state & CT_TCP_OPEN) | ((state & CT_SEEN_LO) & ((state & CT_SEEN_HI) >> 1));
	const __u32 lo = state & CT_FIN_LO, hi = (state & CT_FIN_HI) >> 1;
	const __u32 over = (state & CT_RST) | (lo & hi) | ((lo | hi) & (dsr >> 4));

	_Static_assert(CT_SEEN_HI == CT_SEEN_LO << 1 && CT_FIN_HI == CT_FIN_LO << 1 && LEG_DSR == CT_FIN_LO << 4,
		       "bits");
	return !answered | !!over;
}

/* The table is full: a flow goes, of those that were entered longest ago as far as np_recent knows. True: there is room
 * for an entry. Writes victim. */
NP_GLOBAL int make_room(void)
{
	struct scratch *s = scratch_take();
	struct pressure *pressure;
	struct ct_key *recent;
	struct ct_value *v;
	__u32 zero = 0, slot, idle = RECENT_FLOWS;

	if (!s)
		return false;
	opaque(idle);
	pressure = bpf_map_lookup_elem(&np_pressure, &zero);
	if (pressure && s->now > pressure->full_at + PRESSURE_NS)
		pressure->full_at = s->now; /* wakes the agent */
	for (int i = 0; i < EVICT_TRIES; i++) {
		slot = recent_next(s);
		recent = bpf_map_lookup_elem(&np_recent, &slot);
		if (!recent)
			return false;
		s->victim = *recent;
		v = bpf_map_lookup_elem(&np_ct, &s->victim);
		if (!v)
			continue;
		if (is_evicted_first(v)) {
			evict(s, v);
			return true;
		}
		if (s->now > v->seen + 2 * CT_FRESH_NS)
			idle = slot;
	}
	recent = bpf_map_lookup_elem(&np_recent, &idle);
	if (!recent)
		return false;
	s->victim = *recent;
	v = bpf_map_lookup_elem(&np_ct, &s->victim);
	if (v)
		evict(s, v);
	return true;
}

#endif
