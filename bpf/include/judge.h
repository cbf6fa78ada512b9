/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* May a flow be? Host policy is asked first, then that of its ends which are pods of this node. Layer: slow paths. */
#ifndef NP_JUDGE_H
#define NP_JUDGE_H

#include "enter.h"
#include "hosts.h"
#include "way.h"

/* What tells flows of this protocol apart for rules. The answer to an echo stands for the echo. */
static __always_inline enum drop query_ports(struct __sk_buff *skb, struct scratch *s, const struct ct_tuple *t)
{
	struct query *q = &s->query;
	__u8 icmp[2];

	q->proto = s->p.proto;
	q->source_port = bpf_ntohs(t->sport);
	q->port = bpf_ntohs(t->dport);
	if (!pkt_is_icmp(&s->p))
		return DROP_NONE;
	if (s->p.fragment)
		return DROP_FRAGMENT_UNKNOWN; /* the type is in the first, which has not been let be */
	if (bpf_skb_load_bytes(skb, s->p.l4, icmp, sizeof(icmp)))
		return DROP_SHORT;
	if (s->judged.by_answer)
		icmp[0] = s->p.v4 ? ICMP_ECHO : ICMP6_ECHO;
	q->port = icmp[0] << 8 | icmp[1];
	q->source_port = 0;
	return DROP_NONE;
}

/* Who the ends are, for the one that is asked. */
static __always_inline void query_ends(struct query *q, const struct addr *own, const struct addr *peer,
				       const struct addr_info *info)
{
	q->own = *own;
	q->peer = identity_of(peer, info);
}

static __always_inline void query_source(struct scratch *s)
{
	query_ends(&s->query, &s->judged.t.src, &s->judged.t.dst, &s->dst);
}

static __always_inline void query_destination(struct scratch *s)
{
	query_ends(&s->query, &s->judged.t.dst, &s->judged.t.src, &s->src);
}

/* A direction of an endpoint: what its rules say, and what they would say with the staged policies. */
static __always_inline __u32 policy_ask(struct scratch *s, __u64 set, __u64 staged, bool ingress)
{
	struct judged *j = &s->judged;
	__u32 action = RULE_OPEN, rule = 0;

	if (set) {
		s->query.set = set;
		action = policy_verdict();
		if (action != RULE_OPEN)
			rule = rule_number(s);
	}
	if (action != RULE_OPEN && ingress)
		j->ingress_rule = rule;
	if (action != RULE_OPEN && !ingress)
		j->egress_rule = rule;
	if (NP_STAGED && staged && staged != set) {
		s->query.set = staged;
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

/* ---- host policy ---------------------------------------------------------------------------------- */

/* The state of the node's socket that takes the packet; 0: none does. */
static __noinline __u32 tcp_state(struct __sk_buff *skb, const struct ct_tuple *t)
{
	const bool v4 = addr_is_v4(&t->src);
	struct bpf_sock_tuple ends = {};
	struct bpf_sock *socket;
	__u32 state;

	if (v4) {
		ends.ipv4.saddr = t->src.w[3];
		ends.ipv4.daddr = t->dst.w[3];
		ends.ipv4.sport = t->sport;
		ends.ipv4.dport = t->dport;
	} else {
		addr_to_v6(ends.ipv6.saddr, &t->src);
		addr_to_v6(ends.ipv6.daddr, &t->dst);
		ends.ipv6.sport = t->sport;
		ends.ipv6.dport = t->dport;
	}
	socket = v4 ? bpf_skc_lookup_tcp(skb, &ends, sizeof(ends.ipv4), BPF_F_CURRENT_NETNS, 0)
		    : bpf_skc_lookup_tcp(skb, &ends, sizeof(ends.ipv6), BPF_F_CURRENT_NETNS, 0);
	if (!socket)
		return 0;
	state = socket->state;
	bpf_sk_release(socket);
	return state;
}

/* Is the socket one end of a connection, and not of one that another only asks for? */
static __always_inline bool tcp_is_connected(__u32 state)
{
	return state && state != BPF_TCP_SYN_RECV && state != BPF_TCP_NEW_SYN_RECV && state != BPF_TCP_LISTEN;
}

/* Are there rules for what passes this device? */
static __always_inline bool host_asks(__u32 ifindex)
{
	return cfg.host_policy && host_sets_of(ifindex, HOST_REAL);
}

static __always_inline __u32 host_ask(struct scratch *s, __u32 device, __u32 slot)
{
	struct host_sets *real = host_sets_of(device, HOST_REAL), *staged;
	bool ingress = slot == HOST_EARLY_INGRESS || slot == HOST_FORWARD_INGRESS || slot == HOST_NORMAL_INGRESS;

	if (!real || slot > HOST_NORMAL_EGRESS)
		return RULE_OPEN;
	staged = NP_STAGED ? host_sets_of(device, HOST_STAGED) : 0;
	if (!staged)
		staged = real;
	return policy_ask(s, host_set(real, slot), host_set(staged, slot), ingress);
}

/* Is the flow a TCP connection of the node's own with a failsafe port, older than the rules, so that the port's end
 * is seen first? Then the node has a socket for it, and where the port is the other end's, has opened it: no other
 * of its sockets listens on this one's port. */
static __noinline bool is_older(struct __sk_buff *skb, struct scratch *s, __u32 direction)
{
	struct ct_tuple t = s->judged.t;

	if (s->p.proto != IPPROTO_TCP || !pkt_may_be_answer(&s->p) || !is_failsafe_answer(IPPROTO_TCP, &t, direction))
		return false;
	if (direction == FAILSAFE_OUT)
		ct_reverse(&t, &s->judged.t);
	if (!tcp_is_connected(tcp_state(skb, &t)))
		return false;
	t.sport = 0; /* no client's port: only a listening socket has it */
	return direction == FAILSAFE_OUT || tcp_state(skb, &t) != BPF_TCP_LISTEN;
}

/* What comes in by a device of the node, or from a pod for the node itself: first as it came, before services are
 * translated. */
static __always_inline __u32 host_ingress(struct __sk_buff *skb, struct scratch *s)
{
	struct judged *j = &s->judged;
	bool own = s->dst.kind == ADDR_SELF;
	__u16 port = s->query.port;
	__u32 action = RULE_OPEN;

	if (j->hook != FROM_HOST && !(own && j->hook == FROM_WORKLOAD))
		return RULE_OPEN;
	query_destination(s);
	if (j->hook == FROM_HOST && !j->tunnelled) {
		s->query.own = j->before.dst;
		if (j->before.dport != j->t.dport)
			s->query.port = bpf_ntohs(j->before.dport);
		action = host_ask(s, j->device, HOST_EARLY_INGRESS);
		s->query.own = j->t.dst;
		s->query.port = port;
	}
	if (action == RULE_OPEN)
		action = host_ask(s, j->device, own ? HOST_NORMAL_INGRESS : HOST_FORWARD_INGRESS);
	if (action != RULE_DENY || !own)
		return action;
	return is_failsafe(s->p.proto, &j->t, FAILSAFE_IN) || is_older(skb, s, FAILSAFE_IN) ? RULE_OPEN : action;
}

/* What the node itself sends, and what it forwards. */
static __always_inline __u32 host_egress(struct __sk_buff *skb, struct scratch *s)
{
	struct judged *j = &s->judged;
	bool own = s->src.kind == ADDR_SELF && !hook_is_from(j->hook);
	__u32 device = j->way_out, action;

	if (own || j->hook == TO_HOST)
		device = j->device;
	else if (!device)
		return RULE_OPEN;
	query_source(s);
	action = host_ask(s, device, own ? HOST_NORMAL_EGRESS : HOST_FORWARD_EGRESS);
	if (action != RULE_DENY || !own)
		return action;
	return is_failsafe(s->p.proto, &j->t, FAILSAFE_OUT) || is_older(skb, s, FAILSAFE_OUT) ? RULE_OPEN : action;
}

/* The device of the network by which packets of this leg leave; some have a pod's, for which there are no such
 * rules. */
static __always_inline __u32 way_out_of(const struct ct_leg *leg)
{
	return leg->flags & (LEG_NEIGH | LEG_ENCAP | LEG_STACK) ? leg->ifindex : 0;
}

/* What is asked of every packet by itself, and tracked by nobody. Returns one of enum rule_action. */
static __noinline __u32 untracked_judge(struct __sk_buff *skb, struct scratch *s)
{
	const bool in = s->hook == FROM_HOST;
	const struct addr *own = in ? &s->p.t.dst : &s->p.t.src, *peer = in ? &s->p.t.src : &s->p.t.dst;
	struct host_sets *sets = host_sets_of(skb->ifindex, HOST_REAL);
	struct addr_info info;
	__u32 action, direction;

	if (!sets)
		return RULE_OPEN;
	s->query.set = in ? sets->untracked_ingress : sets->untracked_egress;
	if (!s->query.set)
		return RULE_OPEN;
	s->judged.by_answer = 0;
	if (query_ports(skb, s, &s->p.t))
		return RULE_DENY;
	addr_look(&info, peer);
	query_ends(&s->query, own, peer, &info);
	action = policy_verdict();
	if (action != RULE_DENY)
		return action;
	direction = in ? FAILSAFE_IN : FAILSAFE_OUT;
	if (!is_failsafe(s->p.proto, &s->p.t, direction) &&
	    !(pkt_may_be_answer(&s->p) && is_failsafe_answer(s->p.proto, &s->p.t, direction)))
		return action;
	addr_look(&info, own);
	if (!info.kind && (in ? addr_is_own(skb, s, peer, own) : addr_is_link_local(own)))
		info.kind = ADDR_SELF;
	return info.kind == ADDR_SELF ? RULE_OPEN : action;
}

/* ---- flows ---------------------------------------------------------------------------------------- */

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

/* Do all rules let the flow be that s->judged tells of? s->src and s->dst: what is known of its ends. What a pod's
 * rules say is what is noted, where both it and the node have any. Returns an enum drop. */
NP_GLOBAL __u32 judge(struct __sk_buff *skb)
{
	struct scratch *s = scratch_take();
	struct judged *j;

	if (!s)
		return DROP_POLICY;
	j = &s->judged;
	if (cfg.host_policy && (host_ingress(skb, s) == RULE_DENY || host_egress(skb, s) == RULE_DENY))
		return DROP_POLICY;
	if (is_held(&s->src)) {
		query_source(s);
		if (policy_ask(s, s->src.egress, s->src.staged_egress, false) == RULE_DENY)
			return DROP_POLICY;
	}
	/* the node always reaches its pods */
	if (is_guarded(&s->dst) && (s->src.kind != ADDR_SELF || hook_is_from(j->hook))) {
		query_destination(s);
		if (policy_ask(s, s->dst.ingress, s->dst.staged_ingress, true) == RULE_DENY)
			return DROP_POLICY;
	}
	return DROP_NONE;
}

/* Is there anything to ask? */
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
 * order. */
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
	j->tunnelled = leg->flags & (LEG_TUNNELLED | LEG_BY_TUNNEL);
	j->by_node = leg->flags & LEG_BY_NODE;
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
 * whatever its address: that was asked about where it left the pod. */
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

static __always_inline enum drop flow_judge(struct __sk_buff *skb, struct scratch *s, struct ct_value *v)
{
	struct judged *j = &s->judged;
	enum drop why;

	j->egress_rule = 0;
	j->ingress_rule = 0;
	j->staged_egress_rule = 0;
	j->staged_ingress_rule = 0;
	if (cfg.pod_to_host && s->src.kind == ADDR_LOCAL_POD && s->dst.kind == ADDR_SELF)
		return DROP_POLICY;
	/* a pod always reaches itself, as long as it is it */
	if (is_judged(s) && !(j->hook == FROM_WORKLOAD && addr_eq(&j->t.src, &j->t.dst))) {
		why = query_ports(skb, s, &j->t);
		if (!why)
			why = judge(skb);
		if (why)
			return why;
	}
	v->epoch = policy_epoch();
	v->egress_rule = j->egress_rule;
	v->ingress_rule = j->ingress_rule;
	v->staged_egress_rule = j->staged_egress_rule;
	v->staged_ingress_rule = j->staged_ingress_rule;
	return DROP_NONE;
}

#endif
