/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* How an endpoint's rules are asked: the query of a flow, and the verdict of a set. Layer: slow paths. */
#ifndef NP_POLICY_QUERY_H
#define NP_POLICY_QUERY_H

#include "base/scratch.h"
#include "policy/evaluate.h"

/* What tells flows of this protocol apart for rules. The answer to an echo stands for the echo.
 * Reads judged.by_answer; writes eval.query. */
static __always_inline enum drop query_ports(struct __sk_buff *skb, struct scratch *s, const struct ct_tuple *t)
{
	struct query *q = &s->eval.query;
	__u8 icmp[2];

	q->proto = s->p.proto;
	q->source_port = bpf_ntohs(t->sport);
	q->port = bpf_ntohs(t->dport);
	if (!pkt_is_icmp(&s->p))
		return DROP_NONE;
	if (s->p.fragment)
		return DROP_FRAGMENT_UNKNOWN; /* the type is in the first, which was not allowed */
	if (bpf_skb_load_bytes(skb, s->p.l4, icmp, sizeof(icmp)))
		return DROP_SHORT;
	/* an answer's type is the one behind its question's, but for IPv4's echo */
	if (s->judged.by_answer)
		icmp[0] = s->p.v4 && !icmp[0] ? ICMP_ECHO : icmp[0] - 1;
	q->port = icmp[0] << 8 | icmp[1];
	q->source_port = 0;
	return DROP_NONE;
}

/* Fills in both ends, as the end sees them whose rules are asked. */
static __always_inline void query_ends(struct query *q, const struct addr *own, const struct addr *peer,
				       const struct addr_info *info)
{
	q->own = *own;
	q->peer = identity_of(peer, info);
}

/* Reads judged.t, dst; writes eval.query. */
static __always_inline void query_source(struct scratch *s)
{
	query_ends(&s->eval.query, &s->judged.t.src, &s->judged.t.dst, &s->dst);
}

/* Reads judged.t, src; writes eval.query. */
static __always_inline void query_destination(struct scratch *s)
{
	query_ends(&s->eval.query, &s->judged.t.dst, &s->judged.t.src, &s->src);
}

/* A direction of an endpoint: what its rules say, and what they would say with the staged policies.
 * Reads eval.query; writes eval, the rules in judged. */
static __always_inline __u32 policy_ask(struct scratch *s, __u64 set, __u64 staged, bool ingress)
{
	struct judged *j = &s->judged;
	__u32 action = RULE_OPEN, rule = 0;

	if (set) {
		s->eval.query.set = set;
		action = policy_verdict();
		if (action != RULE_OPEN)
			rule = rule_number(s);
	}
	if (action != RULE_OPEN && ingress)
		j->ingress_rule = rule;
	if (action != RULE_OPEN && !ingress)
		j->egress_rule = rule;
	if (HAS_STAGED_POLICIES && staged && staged != set) {
		s->eval.query.set = staged;
		rule = policy_verdict() == RULE_OPEN ? 0 : rule_number(s);
	} else if (!staged) {
		rule = 0;
	}
	if (rule && ingress)
		j->staged_ingress_rule = rule;
	if (rule && !ingress)
		j->staged_egress_rule = rule;
	return action;
}

#endif
