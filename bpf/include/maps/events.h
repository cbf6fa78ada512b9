/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* What packets tell of flows. Layer: slow paths. */
#ifndef NP_MAPS_EVENTS_H
#define NP_MAPS_EVENTS_H

#include "base/scratch.h"
#include "conntrack/entry.h"
#include "maps/event-map.h"

/* What packets do whose end is told, and at which rate they come, is not ours to say. Reads now; writes budget. */
static __always_inline bool is_affordable(struct scratch *s, __u32 reason)
{
	const __u32 when = s->now >> EVENT_WHILE_SHIFT;
	struct event_budget *budget = &s->budget[reason & (EVENT_REASONS - 1)];

	if (budget->when != when) {
		budget->when = when;
		budget->told = 0;
	}
	return budget->told++ < EVENT_DROPS;
}

/* Tells of the packet at hand, if anything listens. What it cannot tell is counted. `reason`: enum drop.
 * Reads p, hook, now, is_judged, judged; writes event, budget. */
NP_GLOBAL int event_tell(struct __sk_buff *skb, __u32 kind, __u32 reason)
{
	struct scratch *s = scratch_take();
	struct flow_event *e;

	if (!s || !accounts())
		return 0;
	if (reason && !is_affordable(s, reason)) {
		count_slot(DROP_MAX + COUNT_EVENT_UNTOLD);
		return 0;
	}
	e = &s->event;
	__builtin_memset(e, 0, sizeof(*e));
	e->at = s->now;
	e->sent = s->p.t;
	if (s->is_judged) {
		e->sent = s->judged.before;
		e->flow = s->judged.t;
		e->egress_rule = s->judged.egress_rule;
		e->ingress_rule = s->judged.ingress_rule;
		e->staged_egress_rule = s->judged.staged_egress_rule;
		e->staged_ingress_rule = s->judged.staged_ingress_rule;
	}
	e->device = skb->ifindex;
	e->length = s->p.len;
	e->kind = kind;
	e->reason = reason;
	e->proto = s->p.proto;
	e->hook = s->hook;
	e->tunnelled = s->p.tunnelled;
	e->lane = s->key.lane;
	if (event_send(skb, e))
		count_slot(DROP_MAX + COUNT_EVENT_UNTOLD);
	return 0;
}

#endif
