/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* Is the flow that is there the packet's, and is what was decided about it still right? Layer: slow paths. */
#ifndef NP_CONNTRACK_LOOKUP_H
#define NP_CONNTRACK_LOOKUP_H

#include "conntrack/update.h"

/* Does the packet belong to another flow with the same addresses and ports: a client's that came by another node,
 * or by a service? */
static __noinline bool flow_is_other(struct scratch *s, struct ct_value *v)
{
	struct ct_leg *leg = &v->leg[s->dir & 1];

	return !s->told && !came_its_way(v, leg, s->p.tunnelled ? &s->tunnel_from : 0, s->hook);
}

/* Is it the same flow, whose way has changed? Flows without ports have equal keys; and a node may take a connection
 * over from another. A flow that comes another way now is judged as it comes now: a pod's own rules are not asked
 * about what the network brings. Writes renew. */
static __noinline bool flow_has_moved(struct __sk_buff *skb, struct scratch *s, struct ct_value *v)
{
	struct ct_leg *leg = &v->leg[s->dir & 1];
	const bool to_service = leg->flags & LEG_NAT;
	bool taken_over = s->p.tunnelled && leg->flags & LEG_TUNNELLED && s->p.proto == IPPROTO_TCP &&
			  !pkt_is_syn(&s->p);
	/* pods' answers, when the tunnel between them has come to be or to an end */
	bool other_way = leg->flags & LEG_ANSWER && leg->flags & LEG_TUNNELLED;

	if (to_service && leg->flags & LEG_ANSWER)
		return false; /* it was this node that chose the backend's node */
	if ((!taken_over && !other_way && pkt_has_ports(&s->p)) ||
	    (s->hook == FROM_HOST && (leg->flags & LEG_BY_NODE || source_is_elsewhere(s))))
		return false;
	if (s->p.tunnelled)
		v->via = s->tunnel_from;
	else
		leg->flags &= ~LEG_TUNNELLED;
	if (!(leg->flags & LEG_ANSWER)) {
		v->leg[0].hook = s->hook;
		v->leg[1].hook = s->hook;
		v->device = device_of(skb, s, leg);
		if (s->p.tunnelled)
			leg->flags |= LEG_TUNNELLED;
	}
	s->renew = 1;
	return true;
}

/* Has the flow's backend gone, or has its destination become a service's? Connections stay with what they have, as
 * far as there is one; datagrams and attempts to connect move on. */
static __noinline bool flow_is_stale(struct scratch *s, const struct ct_value *v)
{
	const struct ct_leg *leg = &v->leg[s->dir & 1];
	bool udp = s->p.proto == IPPROTO_UDP;
	bool to_backend = leg->flags & LEG_NAT && !(addr_eq(&v->out.dst, &s->p.t.dst) && v->out.dport == s->p.t.dport);
	/* kube-proxy's, without an answer: its backend may be gone, and nothing else would tell */
	bool unanswered = v->state & CT_FOREIGN && s->hook == FROM_HOST && !(v->state & ct_seen_bit(!(s->dir & 1)));
	struct addr_info info = {};
	struct frontend *fe;

	if (leg->flags & LEG_ANSWER || s->p.fragment || (!to_backend && !unanswered && s->hook != FROM_WORKLOAD))
		return false;
	if (!udp && !(pkt_is_syn(&s->p) && !(v->state & CT_TCP_OPEN)))
		return false;
	fe = service_of_packet(s, &info);
	if (!fe)
		return to_backend;
	if (unanswered)
		return !(fe->flags & FRONTEND_PODS);
	return !(leg->flags & LEG_NAT) || !backend_stays(choice_of(s, fe), v);
}

/* Takes both entries of a flow out. Reads key; writes draft.peer_key. */
static __noinline void flow_forget(struct scratch *s, const struct ct_value *v)
{
	struct ct_tuple back;
	__u32 dir = 0;

	ct_reverse(&back, &s->p.t);
	if (flow_peer(s, v, &back, &dir))
		bpf_map_delete_elem(&np_ct, &s->draft.peer_key);
	bpf_map_delete_elem(&np_ct, &s->key);
}

/* Has the address of the local pod that it goes to been given to another? */
static __noinline bool pod_is_gone(struct scratch *s, const struct ct_value *v)
{
	const struct ct_leg *leg = &v->leg[s->dir & 1];
	struct addr_info *info;

	if ((leg->flags & (LEG_READY | LEG_POD | LEG_ENCAP)) != (LEG_READY | LEG_POD))
		return false;
	info = bpf_map_lookup_elem(&np_addrs, leg->flags & LEG_NAT ? &v->out.dst : &s->p.t.dst);
	return !info || info->ifindex != leg->ifindex;
}

/* Is the flow still what it was? FLOW_THERE, FLOW_STALE, or the packet is dropped. */
static __noinline enum verdict flow_look_again(struct scratch *s, const struct ct_value *v)
{
	if (flow_is_stale(s, v)) {
		flow_forget(s, v);
		count_slot(DROP_MAX + COUNT_MOVED);
		return FLOW_STALE;
	}
	if (!(v->state & CT_FOREIGN) && pod_is_gone(s, v)) {
		flow_forget(s, v);
		return s->p.proto == IPPROTO_TCP && !pkt_is_syn(&s->p) ? dropped(DROP_POD_GONE) : FLOW_STALE;
	}
	return FLOW_THERE;
}

/* Does the answering end start a connection itself, by the same addresses and ports, or send ICMP that is no answer? */
static __always_inline bool is_attempt_back(const struct scratch *s, const struct ct_leg *leg)
{
	return leg->flags & LEG_ANSWER && pkt_asks(&s->p);
}

/* Last fragments of ICMP have no type. Answers have another type than the one that was allowed. Both follow the flow's
 * verdict while the rules are those that made it. */
static __always_inline bool is_let_be(const struct scratch *s, const struct ct_value *v)
{
	const struct ct_leg *leg = &v->leg[s->dir & 1];

	return v->epoch == policy_epoch() && pkt_is_icmp(&s->p) &&
	       (s->p.fragment || (leg->flags & LEG_ANSWER && !s->p.asks));
}

/* Fills in what is judged when an existing flow is judged again: the flow, or by itself an attempt of the other
 * end. Reads by_other, reroute; writes judged, src, dst. */
static __noinline void judged_again(struct __sk_buff *skb, struct scratch *s, const struct ct_value *v)
{
	const struct ct_leg *leg = &v->leg[s->dir & 1];
	struct judged *j = &s->judged;

	judged_flow(s, v);
	if (s->by_other)
		j->device = skb->ifindex;
	if (is_attempt_back(s, leg)) {
		j->hook = s->hook;
		j->device = device_of(skb, s, leg);
		j->tunnelled = s->p.tunnelled;
		j->by_answer = 0;
		j->met = 0;
		j->before = s->p.t;
		j->t = s->p.t;
		if (leg->flags & LEG_NAT) {
			j->t.dst = v->out.dst;
			j->t.dport = v->out.dport;
		}
		j->way_out = way_out_of(leg);
	}
	addr_look(&s->src, &j->t.src);
	addr_look(&s->dst, &j->t.dst);
	if (is_attempt_back(s, leg))
		j->by_node = !hook_is_from(s->hook) && is_nodes_own(skb, s);
	judged_ends(skb, s);
}

/* The rules no longer allow the flow. Its entries stay until they expire without another packet. So each packet that
 * comes is judged, and none is taken for the first of another flow, which would leave untranslated. ICMP is judged
 * packet by packet. Reads key; writes draft.peer_key. */
static __noinline void flow_deny(struct scratch *s, struct ct_value *v)
{
	struct ct_value *peer;
	struct ct_tuple back;
	__u32 dir = 0;

	if (pkt_is_icmp(&s->p)) {
		flow_forget(s, v);
		return;
	}
	v->epoch = policy_epoch() - 1;
	ct_reverse(&back, &s->p.t);
	peer = flow_peer(s, v, &back, &dir);
	if (peer)
		peer->epoch = v->epoch;
}

/* The lane of flows that came as this one did, when another has its addresses and ports. */
static __always_inline __u16 lane_of(const struct scratch *s)
{
	/* nodes' addresses are alike: a sum or XOR of their parts is often the same */
	__u16 from = mix_end(mix_addr(0, &s->tunnel_from));

	return !s->p.tunnelled ? 1 : from < 2 ? from + 2 : from;
}

/* The end that has another proxy's connection by these addresses and ports would not begin one itself: the kernel
 * translates to them what the client sends to a service. Packets of this direction are the connection's only behind
 * that translation. */
static __always_inline void foreign_is_inner(struct ct_leg *leg, struct ct_leg *back)
{
	back->flags |= LEG_ANSWER;
	leg->flags = (leg->flags & ~LEG_ANSWER) | LEG_INNER;
}

/* The packet's flow, if there is one. Reads known_miss; writes key.lane, renew, draft.peer_key. */
static __noinline struct ct_value *flow_find(struct __sk_buff *skb, struct scratch *s)
{
	struct ct_value *v = s->known_miss ? 0 : bpf_map_lookup_elem(&np_ct, &s->key), *beside;

	if (v && flow_gives_way(s, v)) {
		flow_forget(s, v); /* what comes next may not be entered, and its answers are not this flow's */
		v = 0;
	}
	if (v && v->state & CT_FOREIGN && !(v->leg[s->dir & 1].flags & LEG_OPENING) && hook_is_from(s->hook) &&
	    pkt_is_syn(&s->p))
		foreign_is_inner(&v->leg[s->dir & 1], &v->leg[opposite(s->dir)]);
	if (v && !flow_is_other(s, v))
		return v;
	if (!v && (s->p.proto != IPPROTO_TCP || pkt_is_syn(&s->p)))
		return 0;
	/* another has this place, or had it */
	s->key.lane = lane_of(s);
	beside = bpf_map_lookup_elem(&np_ct, &s->key);
	if (beside && !ct_replaceable(beside, &s->p, s->now) && !flow_is_other(s, beside))
		return beside;
	if (v && !flow_has_moved(skb, s, v))
		return 0;
	s->key.lane = 0;
	return v;
}

#endif
