/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* Is a flow allowed? Host policy is asked first, then that of the ends that are pods of this node. Layer: slow
 * paths. */
#ifndef NP_POLICY_APPLY_H
#define NP_POLICY_APPLY_H

#include "conntrack/insert.h"
#include "lb/service.h"
#include "policy/apply_host.h"
#include "l3/route.h"

/* The device of the network by which packets of this leg leave; some have a pod's, for which there are no such
 * rules. */
static __always_inline __u32 way_out_of(const struct ct_leg *leg)
{
	return leg->flags & (LEG_NEIGH | LEG_ENCAP | LEG_STACK) ? leg->ifindex : 0;
}

/* A pod of this node with rules for flows to it. */
static __always_inline bool is_guarded(const struct addr_info *info)
{
	return info->kind == ADDR_LOCAL_POD && (info->ingress || info->staged_ingress);
}

/* One with rules for flows from it. */
static __always_inline bool is_held(const struct addr_info *info)
{
	return info->kind == ADDR_LOCAL_POD && (info->egress || info->staged_egress);
}

/* Has this node translated one of its own node ports? Reads judged. */
static __always_inline bool is_own_node_port(const struct scratch *s, struct addr_info *info)
{
	const struct ct_tuple *asked = &s->judged.before;

	if (addr_eq(&asked->dst, &s->judged.t.dst) || pkt_is_icmp(&s->p))
		return false;
	addr_look(info, &asked->dst);
	if (!info->kind && is_in_own_prefix(&asked->dst))
		info->kind = ADDR_SELF;
	/* a load balancer's address may be a node's as well */
	return info->kind == ADDR_SELF && !frontend_at(&asked->dst, asked->dport, s->p.proto);
}

/* As a pod's rules see what it sends. Node ports they see as they were asked for: those of other nodes are translated
 * there. Reads judged, dst; writes eval.query. */
static __noinline void query_sender(struct scratch *s)
{
	const struct ct_tuple *asked = &s->judged.before;
	struct query *q = &s->eval.query;
	struct addr_info info = {};

	if (is_own_node_port(s, &info)) {
		query_ends(q, &asked->src, &asked->dst, &info);
		q->port = bpf_ntohs(asked->dport);
	} else {
		query_source(s);
	}
}

/* Does a pod send to itself? */
static __always_inline bool is_to_itself(const struct judged *j)
{
	return j->hook == FROM_WORKLOAD && addr_eq(&j->t.src, &j->t.dst);
}

/* No rules are asked of what a pod sends to its own address, and but for those of the cluster's administrator none
 * counts that denies what it sends to itself by a service. Reads judged. */
static __always_inline bool is_denied(const struct judged *j, __u32 action, __u32 *rule)
{
	if (action != RULE_DENY)
		return false;
	if (!is_to_itself(j) || *rule >> 24 == RULE_OF_CLUSTER)
		return true;
	*rule = 0;
	return false;
}

/* Do the rules of its ends that are pods allow the flow in s->judged? Returns an enum drop.
 * Reads judged, src, dst; writes eval, the rules in judged. */
static __always_inline __u32 judge_pods(struct scratch *s)
{
	struct judged *j = &s->judged;
	__u16 port = s->eval.query.port;
	__u32 action;

	if (is_held(&s->src)) {
		query_sender(s);
		action = policy_ask(s, s->src.egress, s->src.staged_egress, false);
		if (is_denied(j, action, &j->egress_rule))
			return DROP_POLICY;
	}
	/* the node always reaches its pods */
	if (is_guarded(&s->dst) && (s->src.kind != ADDR_SELF || hook_is_from(j->hook))) {
		query_destination(s);
		s->eval.query.port = port;
		action = policy_ask(s, s->dst.ingress, s->dst.staged_ingress, true);
		if (is_denied(j, action, &j->ingress_rule))
			return DROP_POLICY;
	}
	return DROP_NONE;
}

/* Do all rules allow the flow in s->judged? Those of pods are asked if that is its own direction. s->src and s->dst:
 * what is known of its ends. Where both a pod and the node have rules, the pod's rule is the one that is noted. Returns
 * an enum drop. Reads judged, src, dst; writes eval, the rules in judged. */
NP_GLOBAL __u32 judge(struct __sk_buff *skb)
{
	struct scratch *s = scratch_take();

	if (!s)
		return DROP_POLICY;
	if (cfg.host_policy && !is_to_itself(&s->judged) &&
	    (host_ingress(skb, s) == RULE_DENY || host_egress(skb, s) == RULE_DENY))
		return DROP_POLICY;
	return s->judged.met == MET_TURNED ? DROP_NONE : judge_pods(s);
}

/* Turns the flow in s->judged round. A function of its own: its stack is free again before rules are asked. Writes
 * judged.t, judged.before, src, dst. */
static __noinline void judged_turn(struct scratch *s)
{
	const struct ct_tuple t = s->judged.t;
	const struct addr_info info = s->src;

	ct_reverse(&s->judged.t, &t);
	s->judged.before = s->judged.t;
	s->src = s->dst;
	s->dst = info;
}

/* Would they allow it had the other end opened it? The rules that are noted stay those of the direction that was seen,
 * unless the other end has opened it, or one of its rules denies. Returns an enum drop.
 * Reads judged, src, dst; writes eval, the rules in judged. */
NP_GLOBAL __u32 judge_turned(void)
{
	struct scratch *s = scratch_take();
	struct judged *j, *was;
	__u32 why;

	if (!s)
		return DROP_POLICY;
	j = &s->judged;
	was = &s->unturned;
	*was = *j;
	judged_turn(s);
	j->hook = TO_WORKLOAD; /* of what asks here it tells the node alone, which always reaches its pods */
	s->eval.query.proto = s->p.proto;
	s->eval.query.source_port = bpf_ntohs(j->t.sport);
	s->eval.query.port = bpf_ntohs(j->t.dport);
	why = judge_pods(s);
	judged_turn(s);
	if (why || was->met == MET_TURNED) {
		was->egress_rule = j->egress_rule;
		was->ingress_rule = j->ingress_rule;
		was->staged_egress_rule = j->staged_egress_rule;
		was->staged_ingress_rule = j->staged_ingress_rule;
	}
	*j = *was;
	return why;
}

/* Have pods rules for what the other end would open? Reads src, dst. */
static __always_inline bool is_judged_turned(const struct scratch *s)
{
	return is_held(&s->dst) || is_guarded(&s->src);
}

/* May the other end have opened the flow, for all that rules say? Where they would be too much for the verifier none
 * are asked: a flow that any are about is closed. Reads judged, src, dst; writes eval, the rules in judged. */
static __always_inline enum drop flow_judge_turned(struct scratch *s)
{
	if (!s->judged.met || !is_judged_turned(s) || is_to_itself(&s->judged))
		return DROP_NONE;
	return FOR_FLOOR ? DROP_POLICY : judge_turned();
}

/* Is there anything to ask? Reads src, dst. */
static __always_inline bool is_judged(const struct scratch *s)
{
	return cfg.host_policy || is_held(&s->src) || is_guarded(&s->dst);
}

/* The way by which packets of a translated flow leave for its backend, where `v` shows the flow from that side.
 * `inner`: such a packet. */
static __noinline __u32 way_out_of_peer(struct scratch *s, const struct ct_value *v, const struct ct_tuple *inner)
{
	struct ct_value *peer;
	__u32 dir = 0;

	peer = flow_peer(s, v, inner, &dir);
	return peer ? way_out_of(&peer->leg[dir & 1]) : 0;
}

/* The facts that rules are asked by, from the flow's entry alone: the same for its first packet, which has just
 * made that, and for every later one of either direction. So all of them are asked the same rules in the same
 * order. Writes judged, draft.peer_key. */
static __noinline void judged_flow(struct scratch *s, const struct ct_value *v)
{
	const struct ct_leg *leg = &v->leg[s->dir & 1], *back = &v->leg[opposite(s->dir)];
	struct judged *j = &s->judged;
	struct ct_tuple seen;

	j->by_answer = !!(leg->flags & LEG_ANSWER);
	if (j->by_answer) {
		leg = back;
		back = &v->leg[s->dir & 1];
		ct_reverse(&seen, &s->p.t);
	} else {
		seen = s->p.t;
	}
	j->hook = leg->hook;
	j->device = v->device;
	j->egress_rule = v->egress_rule;
	j->ingress_rule = v->ingress_rule;
	j->staged_egress_rule = v->staged_egress_rule;
	j->staged_ingress_rule = v->staged_ingress_rule;
	j->tunnelled = leg->flags & (LEG_TUNNELLED | LEG_BY_TUNNEL);
	j->by_node = leg->flags & LEG_BY_NODE;
	j->met = leg->met;
	j->proxied = v->state & CT_FOREIGN && leg->hook == FROM_HOST;
	j->way_out = way_out_of(leg);
	j->before = seen;
	if (leg->flags & LEG_NAT) { /* its client's view */
		seen.dst = v->out.dst;
		seen.dport = v->out.dport;
	} else if (back->flags & LEG_NAT) { /* its backend's */
		if (cfg.host_policy && leg->flags & LEG_INNER)
			j->way_out = way_out_of_peer(s, v, &seen);
		ct_reverse(&j->before, &v->out);
		seen.src = j->before.src;
		seen.sport = j->before.sport;
	}
	j->t = seen;
}

/* What its ends are for the rules, from rows (s->src, s->dst). Those know what is this node's wherever it is asked;
 * here what is so on a link, in a network, by a route. What comes from the network is no pod's of this node,
 * whatever its address: that was asked about where it left the pod. Reads judged; writes src.kind, dst.kind, fib. */
static __always_inline void judged_ends(struct __sk_buff *skb, struct scratch *s)
{
	const struct judged *j = &s->judged;
	const bool from = hook_is_from(j->hook);

	if (j->hook == FROM_HOST || (!from && s->src.kind == ADDR_SELF))
		s->src.kind = 0;
	if (!from && j->by_node)
		s->src.kind = ADDR_SELF;
	if (!cfg.host_policy && !cfg.pod_to_host)
		return;
	if (from && !s->dst.kind && !j->way_out && /* no route leads on */
	    addr_is_own_by(skb, s, j->device ? j->device : skb->ifindex, &j->t.src, &j->t.dst))
		s->dst.kind = ADDR_SELF;
}

/* Reads judged, src, dst; writes eval, the rules in judged. */
static __always_inline enum drop flow_judge(struct __sk_buff *skb, struct scratch *s)
{
	struct judged *j = &s->judged;
	enum drop why;

	s->is_judged = 1;
	j->egress_rule = 0;
	j->ingress_rule = 0;
	j->staged_egress_rule = 0;
	j->staged_ingress_rule = 0;
	if (cfg.pod_to_host && s->src.kind == ADDR_LOCAL_POD && s->dst.kind == ADDR_SELF)
		return DROP_POLICY;
	if (is_judged(s) && !(is_to_itself(j) && (!cfg.cluster_policy || addr_eq(&j->before.dst, &j->t.dst)))) {
		why = query_ports(skb, s, &j->t);
		if (!why)
			why = judge(skb);
		if (why)
			return why;
	}
	return flow_judge_turned(s);
}

/* What was judged is the flow's verdict. Reads judged. */
static __always_inline void flow_note(const struct scratch *s, struct ct_value *v)
{
	const struct judged *j = &s->judged;

	v->epoch = policy_epoch();
	v->egress_rule = j->egress_rule;
	v->ingress_rule = j->ingress_rule;
	v->staged_egress_rule = j->staged_egress_rule;
	v->staged_ingress_rule = j->staged_ingress_rule;
}

#endif
