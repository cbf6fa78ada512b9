/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* Which backend a new flow goes to: the client's last one, by Maglev's table, or any. Layer: slow paths. */
#ifndef NP_LB_SELECT_H
#define NP_LB_SELECT_H

#include "l3/route.h"
#include "lb/affinity.h"

/* The service that the packet is for. Fills in what is known of its destination. */
static __noinline struct frontend *service_of_packet(const struct scratch *s, struct addr_info *dst)
{
	const struct ct_tuple *t = &s->p.t;
	struct frontend *fe = frontend_find(&t->dst, t->dport, s->p.proto, dst, s->hook == FROM_HOST);
	__u32 own = fe || dst->kind || !hook_is_from(s->hook) ? 0 : own_prefix(false);

	if (!own)
		return fe;
	dst->kind = ADDR_SELF;
	dst->flags = own & PREFIX_NODE_PORTS ? ADDR_NODE_PORTS : 0;
	return frontend_of_node(&t->dst, t->dport, s->p.proto, dst);
}

/* This node's pods and processes have their own choice, and so have pods of other nodes where it matters most:
 * there may be no backend here. */
static __noinline const struct choice *choice_of(const struct scratch *s, const struct frontend *fe)
{
	if (s->hook != FROM_HOST || (fe->flags & FRONTEND_OUTSIDE_LOCAL && range_has(RANGE_INSIDE, &s->p.t.src)))
		return &fe->inside;
	return &fe->outside;
}

/* The same on every node for the same client; with affinity without its port. */
static __always_inline __u32 flow_hash(const struct ct_tuple *t, __u64 list, bool with_port)
{
	return mix_end(mix(mix_addr(mix((__u32)list, (__u32)(list >> 32)), &t->src), with_port ? t->sport : 0));
}

static __noinline struct backend *pick_by_maglev(struct scratch *s, const struct frontend *fe,
						 const struct choice *from, __u32 *slot)
{
	__u64 list = from->list;
	struct maglev *table = bpf_map_lookup_elem(&np_maglev, &list);
	__u64 at = flow_hash(&s->p.t, list, !fe->affinity) % MAGLEV_SIZE;

	opaque(at);
	if (!table || at >= MAGLEV_SIZE)
		return 0;
	*slot = table->slot[at];
	return backend_in(list, *slot);
}

/* The backend of the client's last flow; 0: there is none to stay with. */
static __noinline struct backend *pick_by_affinity(struct scratch *s, const struct frontend *fe,
						   const struct choice *from, __u32 *slot)
{
	struct affinity_key k = {};
	struct live *live;

	k.list = from->list;
	k.client = s->p.t.src;
	live = affinity_find(&k, fe->affinity, s->now);
	if (!live)
		return 0;
	*slot = live->slot;
	return backend_in(from->list, live->slot);
}

static __noinline void affinity_note(struct scratch *s, const struct choice *from, const struct backend *be)
{
	struct affinity_key k = {};

	k.list = from->list;
	k.client = s->p.t.src;
	affinity_put(&k, be, s->now);
}

/* 0: there is none. */
static __noinline struct backend *backend_pick(struct scratch *s, const struct frontend *fe, const struct choice *from,
					       __u32 *slot)
{
	struct backend *be = 0;

	if (fe->affinity) {
		be = pick_by_affinity(s, fe, from, slot);
		if (be)
			return be;
	}
	if (fe->flags & FRONTEND_MAGLEV)
		be = pick_by_maglev(s, fe, from, slot);
	if (!be)
		be = backend_at_random(from, slot);
	if (be && fe->affinity)
		affinity_note(s, from, be);
	return be;
}

/* May flows stay with this backend? */
static __noinline bool backend_stays(const struct choice *from, const struct ct_value *v)
{
	return backend_is(backend_in(from->list, v->slot), &v->out.dst, v->out.dport) ||
	       backend_live(from->list, &v->out.dst, v->out.dport);
}

#endif
