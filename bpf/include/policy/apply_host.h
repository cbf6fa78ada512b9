/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* What host endpoints' rules say of a flow, and of packets that are not tracked. Layer: slow paths. */
#ifndef NP_POLICY_APPLY_HOST_H
#define NP_POLICY_APPLY_HOST_H

#include "policy/query.h"
#include "policy/host.h"
#include "l3/route.h"

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

/* Writes eval, the rules in judged. */
static __always_inline __u32 host_ask(struct scratch *s, __u32 device, __u32 slot)
{
	struct host_sets *real = host_sets_of(device, HOST_REAL), *staged;
	bool ingress = slot == HOST_EARLY_INGRESS || slot == HOST_FORWARD_INGRESS || slot == HOST_NORMAL_INGRESS;

	if (!real || slot > HOST_NORMAL_EGRESS)
		return RULE_OPEN;
	staged = HAS_STAGED_POLICIES ? host_sets_of(device, HOST_STAGED) : 0;
	if (!staged)
		staged = real;
	return policy_ask(s, host_set(real, slot), host_set(staged, slot), ingress);
}

/* Is the flow a TCP connection of the node's own with a failsafe port, older than the rules, so that the port's end
 * is seen first? Then the node has a socket for it, and where the port is the other end's, has opened it: no other
 * of its sockets listens on this one's port. Reads judged. */
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
 * translated. Reads judged, src, dst; writes eval, the rules in judged. */
static __always_inline __u32 host_ingress(struct __sk_buff *skb, struct scratch *s)
{
	struct judged *j = &s->judged;
	bool own = s->dst.kind == ADDR_SELF && !j->proxied;
	__u16 port = s->eval.query.port;
	__u32 action = RULE_OPEN;

	if (j->hook != FROM_HOST && !(own && j->hook == FROM_WORKLOAD))
		return RULE_OPEN;
	query_destination(s);
	if (j->hook == FROM_HOST && !j->tunnelled) {
		s->eval.query.own = j->before.dst;
		if (j->before.dport != j->t.dport)
			s->eval.query.port = bpf_ntohs(j->before.dport);
		action = host_ask(s, j->device, HOST_EARLY_INGRESS);
		s->eval.query.own = j->t.dst;
		s->eval.query.port = port;
	}
	if (action == RULE_OPEN)
		action = host_ask(s, j->device, own ? HOST_NORMAL_INGRESS : HOST_FORWARD_INGRESS);
	if (action != RULE_DENY || !own)
		return action;
	return is_failsafe(s->p.proto, &j->t, FAILSAFE_IN) || is_older(skb, s, FAILSAFE_IN) ? RULE_OPEN : action;
}

/* What the node itself sends, and what it forwards. Reads judged, src, dst; writes eval, the rules in judged. */
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

/* Untracked rules, asked of every packet by itself. Returns one of enum rule_action.
 * Writes eval, judged.by_answer, fib. */
static __noinline __u32 untracked_judge(struct __sk_buff *skb, struct scratch *s)
{
	const bool in = s->hook == FROM_HOST;
	const struct addr *own = in ? &s->p.t.dst : &s->p.t.src, *peer = in ? &s->p.t.src : &s->p.t.dst;
	struct host_sets *sets = host_sets_of(skb->ifindex, HOST_REAL);
	struct addr_info info;
	__u32 action, direction;

	if (!sets)
		return RULE_OPEN;
	s->eval.query.set = in ? sets->untracked_ingress : sets->untracked_egress;
	if (!s->eval.query.set)
		return RULE_OPEN;
	s->judged.by_answer = 0;
	if (query_ports(skb, s, &s->p.t))
		return RULE_DENY;
	addr_look(&info, peer);
	query_ends(&s->eval.query, own, peer, &info);
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

#endif
