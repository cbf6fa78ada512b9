/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* A packet's flow from begin to end: found or made, judged, tracked, sent. What each packet passes is inlined. Layer:
 * slow paths. */
#ifndef NP_CONNTRACK_PACKET_H
#define NP_CONNTRACK_PACKET_H

#include "conntrack/lookup.h"
#include "maps/events.h"

/* Would the packet pass for a node's tunnel packet? It goes to a node's tunnel port, at any address of the node, and a
 * pod sent it or a program translated it. What the node's own kernel sends there is another plugin's: it passes.
 * So does an answer with the pod's own address, which no node takes for a node's: a kernel that hides a client behind
 * its own address may have given it that port, as any other. */
static __noinline bool plays_node(struct __sk_buff *skb, struct scratch *s, const struct ct_value *v)
{
	const struct ct_leg *leg = &v->leg[s->dir & 1];
	const bool nat = leg->flags & LEG_NAT, from_pod = s->hook == FROM_WORKLOAD && !(leg->flags & LEG_ANSWER);
	const struct ct_tuple *out = nat ? &v->out : &s->p.t;

	if ((!nat && !from_pod && !s->p.tunnelled) || s->p.proto != IPPROTO_UDP || out->dport != cfg.tunnel_port)
		return false;
	return is_tunnel_end(&out->dst, out->dport, s->p.proto) || addr_is_own(skb, s, &out->src, &out->dst);
}

/* It goes to the tunnel's port: is it one of the packets by which agents learn whether the tunnel's arrive, between
 * this node and another? Like those it passes whatever rules say, and enters no flow, by which others of its ports
 * would pass. Agents send them whole and without options: they are read the fast way. The tunnel's kernel device drops
 * them. */
static __noinline bool is_tunnel_probe(struct __sk_buff *skb, const struct scratch *s)
{
	const bool in = s->hook == FROM_HOST;
	const struct addr_info *own, *peer;
	struct {
		struct udphdr udp;
		__be32 flags;
	} head;

	if ((!in && s->hook != TO_HOST) || s->p.tunnelled || !s->parsed || addr_is_inner(&s->p.t.dst, s->p.v4) ||
	    bpf_skb_load_bytes(skb, s->p.l4, &head, sizeof(head)) || head.flags != VXLAN_PROBE ||
	    bpf_ntohs(head.udp.len) < sizeof(struct udphdr) + sizeof(struct vxlan))
		return false;
	own = bpf_map_lookup_elem(&np_addrs, in ? &s->p.t.dst : &s->p.t.src);
	peer = bpf_map_lookup_elem(&np_addrs, in ? &s->p.t.src : &s->p.t.dst);
	return own && own->kind == ADDR_SELF && peer && peer->kind == ADDR_NODE;
}

/* Rules that are not tracked, and the source of what they let in. Writes eval, dst, key.lane, judged.by_answer. */
static __always_inline enum verdict untracked_packet(struct __sk_buff *skb, struct scratch *s)
{
	__u32 action = untracked_judge(skb, s);
	enum drop why;

	if (action == RULE_ALLOW && s->hook == FROM_HOST) {
		addr_look(&s->dst, &s->p.t.dst);
		s->key.lane = 0;
		why = source_refused_alone(s);
		if (why)
			return dropped(why);
	}
	if (action == RULE_OPEN)
		return VERDICT_NONE;
	return action == RULE_ALLOW ? VERDICT_PASS : dropped(DROP_POLICY);
}

/* A packet of no flow: there is nothing to prepare. What came in the tunnel does not go on from here: it could come
 * back. Reads key.lane, dst. */
static __noinline enum verdict prepare_alone(struct scratch *s)
{
	enum drop why = s->hook == FROM_HOST ? source_refused_alone(s) : DROP_NONE;

	if (s->p.tunnelled && s->dst.kind != ADDR_LOCAL_POD && s->dst.kind != ADDR_SELF)
		why = DROP_NO_ROUTE;
	return why ? dropped(why) : FLOW_PREPARED;
}

/* Is it ICMP that answers, though nothing is known to have asked? It is sent as a flow's first packet would be, and
 * never entered: requests with its id would pass by what was asked about it. */
static __always_inline bool is_unasked(const struct pkt *p)
{
	return pkt_is_icmp(p) && !p->asks;
}

/* A packet of no known flow: prepared, judged, entered. Ends in FLOW_MADE or FLOW_THERE, or ends the packet.
 * `is_syn`: a SYN where packets enter, of which less is to be asked; the verifier looks at each kind by itself.
 * Reads alone; writes alone, src, dst, reroute, judged, eval, draft, syn, fib. */
static __always_inline enum verdict flow_new(struct __sk_buff *skb, struct scratch *s, const bool is_syn)
{
	enum verdict verdict = !is_syn && s->alone ? prepare_alone(s) : flow_prepare(skb);
	enum drop why;

	if (verdict != FLOW_PREPARED)
		return verdict;
	judged_new(skb, s);
	if (!is_syn && s->hook == TO_HOST && serves_older(skb, s)) {
		judged_served(skb, s);
		s->alone = 1; /* its client's next packet makes the flow */
	}
	if (!is_syn && s->p.proto == IPPROTO_UDP && plays_node(skb, s, &s->draft.v))
		return dropped(DROP_TUNNEL_SOURCE);
	why = flow_judge(skb, s);
	if (why)
		return dropped(why);
	flow_note(s, &s->draft.v);
	if (!is_syn && s->alone)
		return VERDICT_PASS;
	if (!is_syn && is_unasked(&s->p))
		return FLOW_MADE;
	verdict = flow_enter(skb);
	if (verdict == FLOW_MADE && accounts())
		event_tell(skb, EVENT_OPENED, DROP_NONE);
	return verdict;
}

/* The flow that the packet belongs to, if there is one that is still what it was. *why: the packet ends here.
 * Writes renew, by_other, key.lane, draft.peer_key. */
static __always_inline struct ct_value *flow_known(struct __sk_buff *skb, struct scratch *s, enum drop *why)
{
	struct ct_value *v = flow_find(skb, s);
	enum verdict verdict;

	if (!v)
		return 0;
	if (begins_again(&v->leg[s->dir & 1], s->hook) && host_asks(skb->ifindex)) {
		flow_forget(s, v); /* there are such rules now: the flow is judged by those and where it will leave */
		return 0;
	}
	s->by_other = by_other_device(skb, v, &v->leg[s->dir & 1], s->hook);
	/* the last condition: the pod's address is at another device by now */
	s->renew |= s->by_other || !ct_fresh(v) || s->p.tcp_flags & TCP_SYN || v->epoch != policy_epoch() ||
		    pkt_is_icmp(&s->p) || is_attempt_back(s, &v->leg[s->dir & 1]) ||
		    (s->hook == FROM_WORKLOAD && v->leg[opposite(s->dir)].ifindex != skb->ifindex);
	verdict = s->renew ? flow_look_again(s, v) : FLOW_THERE;
	if (is_dropped(verdict))
		*why = drop_reason(verdict);
	return verdict == FLOW_STALE ? 0 : v;
}

/* A packet of a flow that is there: judged again if need be, tracked.
 * Reads renew, by_other; writes src, dst, judged, eval, draft, syn. */
static __always_inline enum drop flow_goes_on(struct __sk_buff *skb, struct scratch *s, struct ct_value *v)
{
	enum drop why;

	if (s->renew)
		judged_again(skb, s, v);
	if (plays_node(skb, s, v))
		return DROP_TUNNEL_SOURCE; /* translated answers as well: they stay unseen, so none goes the fast way */
	if (s->renew && !is_let_be(s, v)) {
		/* what the answering end asks by itself says nothing about the flow; verifiers that look at each path
		 * would look at the rules' twice if that were known before */
		why = flow_judge(skb, s);
		if (why && !s->by_other && !is_attempt_back(s, &v->leg[s->dir & 1]))
			flow_deny(s, v);
		if (why)
			return why;
		if (!is_attempt_back(s, &v->leg[s->dir & 1]))
			flow_note(s, v);
		if (s->by_other)
			v->device = skb->ifindex;
	}
	why = flow_track(skb, s, v);
	if (why)
		return why;
	if (s->hook == FROM_WORKLOAD) {
		v->leg[opposite(s->dir)].ifindex = skb->ifindex;
		v->leg[s->dir & 1].flags |= LEG_BY_NODE;
	}
	return DROP_NONE;
}

/* Reads alone, and what flow_new and flow_goes_on write; writes key, dir. */
static __noinline enum verdict flow_packet(struct __sk_buff *skb, struct scratch *s)
{
	enum drop why = DROP_NONE;
	struct ct_value *v;
	enum verdict verdict = VERDICT_NONE;

	if (s->p.proto == IPPROTO_UDP && s->p.t.dport == cfg.tunnel_port && is_tunnel_probe(skb, s))
		return VERDICT_PASS;
	if (cfg.untracked && (s->hook == FROM_HOST || s->hook == TO_HOST) && !s->p.tunnelled)
		verdict = untracked_packet(skb, s);
	if (verdict != VERDICT_NONE)
		return verdict;
	s->dir = ct_key_of(&s->key, &s->p.t, s->p.proto);
	if (!FOR_FLOOR && hook_is_from(s->hook) && pkt_is_syn(&s->p) && !s->alone) {
		/* where packets enter, a SYN is most likely the first: it is entered at once, which finds out if it
		 * is not. Verifiers that look at each path would look at a new flow's twice: there it costs a lookup */
		verdict = flow_new(skb, s, true);
		if (verdict == FLOW_MADE)
			return flow_send(skb, s, &s->draft.v);
		if (verdict != FLOW_THERE && verdict != VERDICT_PASS)
			return verdict;
	}
	v = s->alone ? 0 : flow_known(skb, s, &why);
	if (why)
		return dropped(why);
	if (!v) {
		verdict = flow_new(skb, s, false);
		if (verdict == FLOW_MADE)
			return flow_send(skb, s, &s->draft.v);
		if (verdict != FLOW_THERE)
			return verdict;
		/* made at this moment by another CPU */
		v = bpf_map_lookup_elem(&np_ct, &s->key);
		if (!v)
			return dropped(DROP_FLOW_INSERT);
		return flow_is_other(s, v) ? dropped(DROP_PORT_COLLISION) : flow_send(skb, s, v);
	}
	why = flow_goes_on(skb, s, v);
	return why ? dropped(why) : flow_send(skb, s, v);
}

#endif
