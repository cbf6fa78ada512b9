/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* The slow path: a flow's first packets, its turns (SYN, FIN, RST, age), and whatever is no plain TCP or UDP.
 * Layer: tc programs. Made of subprograms, and therefore without tail calls of its own. */
#ifndef NP_SLOW_H
#define NP_SLOW_H

#include "conntrack/lookup.h"
#include "l3/icmp.h"
#include "l3/neighbour.h"
#include "l3/reset.h"

/* Must a packet that cannot be read be dropped? Yes for what a pod sends or gets, and for what the host's rules are
 * about. But fragments for the node itself pass: it reassembles them with their first, which is judged. Extension
 * headers hide what the host's rules ask for; they do not hide a forged source. */
static __noinline bool unread_is_ours(struct __sk_buff *skb, struct scratch *s, enum drop why)
{
	struct addr_info *info = bpf_map_lookup_elem(&np_addrs, &s->p.t.dst);
	const bool own = info && info->kind == ADDR_SELF;

	if (s->hook == FROM_WORKLOAD || s->hook == TO_WORKLOAD || s->p.tunnelled ||
	    (info && (info->kind == ADDR_LOCAL_POD || is_stray(skb, s, info))))
		return true;
	if (why == DROP_EXTENSION_HEADERS)
		return host_asks(skb->ifindex) || (s->hook == FROM_HOST && source_is_elsewhere(s));
	return s->hook == FROM_HOST && host_asks(skb->ifindex) && !own &&
	       !addr_is_own(skb, s, &s->p.t.src, &s->p.t.dst);
}

/* May the error's sender report about the flow in s->v? In the network any router may, by an address of a host, also
 * one of the link. In the tunnel the flow's other end may, and the node that the flow passes. With a source that is
 * another node's pod only that end may: no router has such an address. */
static __noinline bool may_tell(struct __sk_buff *skb, struct scratch *s, const struct quoted *quoted)
{
	const struct ct_leg *answers = &s->v.leg[s->dir & 1], *went = &s->v.leg[opposite(s->dir)];
	/* from a device without programs, for example */
	const bool brought = !hook_is_from(s->hook) && skb->ingress_ifindex && !mark_is_known(skb);

	if (!s->p.tunnelled && (s->hook == FROM_HOST || brought)) {
		if (answers->flags & LEG_BY_NODE || went->flags & LEG_ENCAP ||
		    (answers->flags & LEG_ANSWER && answers->flags & LEG_TUNNELLED))
			return false; /* the network has not had what it quotes */
		return !(addr_is_inner(&s->p.t.src, s->p.v4) || addr_is_multicast(&s->p.t.src, s->p.v4) ||
			 source_is_elsewhere(s));
	}
	if (!s->p.tunnelled)
		return true;
	if (addr_eq(&s->p.t.src, &quoted->t.src))
		return true;
	return addr_eq(&s->v.via, &s->tunnel_from) && !(cfg.overlay && route_to(&s->p.t.src));
}

/* Do rules that have changed meanwhile allow the flow that the error quotes? Packets of an echo are judged
 * themselves. */
static __noinline enum drop related_judge(struct __sk_buff *skb, struct scratch *s, struct ct_value *v,
					  const struct quoted *quoted)
{
	struct ct_tuple was = s->p.t;
	__u8 proto = s->p.proto;
	enum drop why;

	if (!HAS_JUDGED_ERRORS || quoted_is_echo(quoted) || v->epoch == policy_epoch())
		return DROP_NONE;
	s->p.t = quoted->t;
	s->p.proto = quoted->proto;
	s->p.tcp_flags = TCP_ACK; /* of a connection that there is, and no SYN of another */
	judged_again(skb, s, v);
	why = flow_judge(skb, s, v);
	if (why)
		flow_deny(s, v);
	s->p.t = was;
	s->p.proto = proto;
	s->p.tcp_flags = 0;
	return why;
}

/* An ICMP error finds the flow it is about and goes the way of its answers. */
static __noinline enum verdict icmp_related(struct __sk_buff *skb, struct scratch *s)
{
	struct quoted quoted = {};
	struct ct_value *v;
	struct ct_leg *leg;
	enum drop why;

	why = quoted_read(skb, s, &quoted);
	if (s->hook == FROM_WORKLOAD && quoted.has_ends && !addr_eq(&s->p.t.src, &quoted.t.src))
		return dropped(DROP_SPOOFED); /* a pod forwards for no other: it reports packets sent to itself */
	/* its receiver may read more of it than we do, or have the rest in another fragment: no error is so long */
	if (why && (quoted.has_ends || s->first_fragment) && unread_is_ours(skb, s, why))
		return dropped(why);
	if (why)
		return VERDICT_NONE; /* about no packet that we could have sent on */
	if (!addr_eq(&s->p.t.dst, &quoted.t.dst))
		return VERDICT_NONE; /* else an end of a flow could send anything to any address */
	s->dir = ct_key_of(&s->key, &quoted.t, quoted.proto);
	v = bpf_map_lookup_elem(&np_ct, &s->key);
	if (!v)
		return VERDICT_NONE;
	if (ct_expired(v, quoted.proto, s->now))
		return VERDICT_NONE;
	s->v = *v;
	if (!may_tell(skb, s, &quoted))
		return dropped(DROP_SPOOFED);
	why = related_judge(skb, s, v, &quoted);
	if (why)
		return dropped(why);
	leg = &s->v.leg[s->dir & 1];
	if (leg->flags & LEG_NAT) {
		if (!(leg->flags & LEG_READY)) {
			why = flow_decide(skb, s, &s->v);
			if (why)
				return dropped(why);
		}
		if (s->hook == FROM_HOST && leg->flags & LEG_LATER)
			return VERDICT_PASS;
		why = icmp_translate(skb, &s->p, &quoted, &s->v.out);
		if (why)
			return dropped(why);
		count_slot(DROP_MAX + COUNT_ICMP_RELATED);
	}
	leg->flags &= ~LEG_NAT; /* it is done */
	return flow_send(skb, s, &s->v);
}

/* Would the packet pass for a node's tunnel packet? It goes to a node's tunnel port, at any address of the node, and a
 * pod sent it or a program translated it. What the node's own kernel sends there is another plugin's: it passes. */
static __noinline bool plays_node(struct __sk_buff *skb, struct scratch *s, const struct ct_value *v)
{
	const bool nat = v->leg[s->dir & 1].flags & LEG_NAT, from_pod = s->hook == FROM_WORKLOAD || s->p.tunnelled;
	const struct ct_tuple *out = nat ? &v->out : &s->p.t;

	if ((!nat && !from_pod) || s->p.proto != IPPROTO_UDP || out->dport != cfg.tunnel_port)
		return false;
	return is_tunnel_end(&out->dst, out->dport, s->p.proto) || addr_is_own(skb, s, &out->src, &out->dst);
}

/* Rules that are not tracked, and the source of what they let in. */
static __noinline enum verdict untracked_packet(struct __sk_buff *skb, struct scratch *s)
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

/* A packet of no flow: judged by itself. */
static __noinline enum verdict packet_alone(struct __sk_buff *skb, struct scratch *s)
{
	enum drop why = s->hook == FROM_HOST ? source_refused_alone(s) : DROP_NONE;

	if (why)
		return dropped(why);
	judged_new(skb, s);
	if (plays_node(skb, s, &s->v))
		return dropped(DROP_TUNNEL_SOURCE);
	why = flow_judge(skb, s, &s->v);
	return why ? dropped(why) : VERDICT_PASS;
}

/* A packet that begins a flow, as far as is known: prepared, judged, entered. Ends in FLOW_MADE or
 * FLOW_THERE, or ends the packet. */
static __noinline enum verdict flow_new(struct __sk_buff *skb, struct scratch *s)
{
	enum verdict verdict = flow_prepare(skb);
	bool older;
	enum drop why;

	if (verdict != FLOW_PREPARED)
		return verdict;
	judged_new(skb, s);
	older = s->hook == TO_HOST && serves_older(skb, s);
	if (older)
		judged_served(skb, s);
	if (s->p.proto == IPPROTO_UDP && plays_node(skb, s, &s->v))
		return dropped(DROP_TUNNEL_SOURCE);
	why = flow_judge(skb, s, &s->v);
	if (why)
		return dropped(why);
	return older ? VERDICT_PASS : flow_enter(skb); /* an older one's client makes the flow with its next packet */
}

/* The flow that the packet belongs to, if there is one that is still what it was. *why: the packet ends here. */
static __noinline struct ct_value *flow_known(struct __sk_buff *skb, struct scratch *s, enum drop *why)
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
	/* the last condition: the address is another pod's by now */
	s->renew |= s->by_other || !ct_fresh(v) || s->p.tcp_flags & TCP_SYN || v->epoch != policy_epoch() ||
		    pkt_is_message(&s->p) || is_attempt_back(s, &v->leg[s->dir & 1]) ||
		    (s->hook == FROM_WORKLOAD && v->leg[opposite(s->dir)].ifindex != skb->ifindex);
	verdict = s->renew ? flow_look_again(s, v) : FLOW_THERE;
	if (is_dropped(verdict))
		*why = drop_reason(verdict);
	return verdict == FLOW_STALE ? 0 : v;
}

/* A packet of a flow that is there: judged again if need be, tracked. */
static __noinline enum drop flow_goes_on(struct __sk_buff *skb, struct scratch *s, struct ct_value *v)
{
	enum drop why;

	if (s->renew)
		judged_again(skb, s, v);
	if (plays_node(skb, s, v))
		return DROP_TUNNEL_SOURCE; /* answers as well: they stay unseen, so none goes the fast way */
	if (s->renew && !is_let_be(s, v)) {
		why = flow_judge(skb, s, v);
		if (why && !s->by_other && !is_attempt_back(s, &v->leg[s->dir & 1]))
			flow_deny(s, v);
		if (why)
			return why;
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

static __noinline enum verdict flow_packet(struct __sk_buff *skb, struct scratch *s)
{
	enum drop why = DROP_NONE;
	struct ct_value *v;
	enum verdict verdict = VERDICT_NONE;

	if (cfg.untracked && (s->hook == FROM_HOST || s->hook == TO_HOST) && !s->p.tunnelled)
		verdict = untracked_packet(skb, s);
	if (verdict != VERDICT_NONE)
		return verdict;
	s->dir = ct_key_of(&s->key, &s->p.t, s->p.proto);
	if (s->alone)
		return packet_alone(skb, s);
	if (hook_is_from(s->hook) && pkt_is_syn(&s->p)) {
		/* where packets enter, a SYN is most likely the first: it is entered at once, which finds out if it
		 * is not */
		verdict = flow_new(skb, s);
		if (verdict == FLOW_MADE)
			return flow_send(skb, s, &s->v);
		if (verdict != FLOW_THERE && verdict != VERDICT_PASS)
			return verdict;
	}
	v = flow_known(skb, s, &why);
	if (why)
		return dropped(why);
	if (!v) {
		verdict = flow_new(skb, s);
		if (verdict == FLOW_MADE)
			return flow_send(skb, s, &s->v);
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

/* What the fast path would not read. VERDICT_NONE: it may be of a flow. */
static __noinline enum verdict slow_parse(struct __sk_buff *skb, struct scratch *s)
{
	enum link_message message;
	enum drop why;
	__be16 proto;

	__builtin_memset(&s->p, 0, offsetof(struct pkt, tunnelled));
	s->p.fragment = 0;
	s->p.len = pkt_length(skb);
	s->p.gso = skb->gso_segs > 1;
	if (bpf_skb_load_bytes(skb, offsetof(struct ethhdr, h_proto), &proto, sizeof(proto)))
		return dropped(DROP_SHORT);
	if (proto == bpf_htons(ETH_P_ARP))
		return s->hook == FROM_WORKLOAD ? arp_from_pod(skb, s) : VERDICT_PASS;
	if (proto == bpf_htons(ETH_P_IP))
		why = parse_v4(skb, s);
	else if (proto == bpf_htons(ETH_P_IPV6))
		why = parse_v6(skb, s);
	else
		return VERDICT_PASS;
	if ((why == DROP_FRAGMENT_UNKNOWN || why == DROP_EXTENSION_HEADERS) && !unread_is_ours(skb, s, why))
		return VERDICT_PASS;
	if (why)
		return dropped(why);
	message = link_message(skb, s);
	if (message != LINK_NONE)
		return s->hook == FROM_WORKLOAD && message == LINK_DISCOVERY ? nd_from_pod(skb, s) : VERDICT_PASS;
	return VERDICT_NONE;
}

/* A pod sends with its own address only: rules know it by no other, nor by its link-local one. */
static __noinline enum drop source_own(struct __sk_buff *skb, struct scratch *s)
{
	struct addr_info *info = bpf_map_lookup_elem(&np_addrs, &s->p.t.src);

	if (info && info->kind == ADDR_LOCAL_POD && info->ifindex == skb->ifindex) {
		s->src = *info;
		return DROP_NONE;
	}
	return DROP_SPOOFED;
}

/* The check of the source where packets leave. It holds for all of them, whatever rules and flows say, and on the way
 * out of the node also for packets that cannot be read. */
static __noinline enum drop source_leaving(struct __sk_buff *skb, struct scratch *s)
{
	ct_key_of(&s->key, &s->p.t, s->p.proto);
	return source_refused_leaving(skb, s);
}

static __always_inline enum verdict slow_packet(struct __sk_buff *skb, struct scratch *s)
{
	enum verdict verdict = s->parsed ? VERDICT_NONE : slow_parse(skb, s);
	enum drop why;

	if (s->hook == TO_HOST ? !is_dropped(verdict) : s->hook == TO_WORKLOAD && verdict == VERDICT_NONE) {
		why = source_leaving(skb, s);
		if (why)
			return dropped(why);
	}
	if (verdict != VERDICT_NONE)
		return verdict;
	if (s->hook == FROM_WORKLOAD) {
		why = source_own(skb, s);
		if (why)
			return dropped(why);
	}
	/* by its address, or by its frame alone, as what is for all of a network */
	if (addr_is_multicast(&s->p.t.dst, s->p.v4) || (s->hook == FROM_HOST && skb->pkt_type != PACKET_HOST)) {
		if (!hook_is_from(s->hook))
			return VERDICT_PASS;
		if (s->hook == FROM_HOST && s->p.v4 && s->p.proto == IPPROTO_IGMP && s->p.ttl == 1 &&
		    !s->first_fragment)
			return VERDICT_PASS; /* as IPv6's listener messages do */
		addr_look(&s->dst, &s->p.t.dst);
		if (s->hook == FROM_HOST)
			s->dst.kind = ADDR_SELF; /* the node is one receiver of all, and does not forward it */
		__builtin_memset(&s->v, 0, sizeof(s->v));
		s->alone = 1; /* of no flow */
		return flow_packet(skb, s);
	}
	if (s->parsed)
		return flow_packet(skb, s);
	if (s->first_fragment)
		fragment_note(s);
	if (icmp_is_error(skb, &s->p)) {
		verdict = icmp_related(skb, s);
		if (verdict != VERDICT_NONE)
			return verdict;
		addr_look(&s->dst, &s->p.t.dst);
		if (hook_is_from(s->hook) && is_stray(skb, s, &s->dst))
			return dropped(DROP_STRAY_SERVICE);
		__builtin_memset(&s->v, 0, sizeof(s->v));
		s->alone = 1;
	}
	return flow_packet(skb, s);
}

static __always_inline int slow_path(struct __sk_buff *skb)
{
	struct scratch *s = scratch_take();
	enum verdict verdict, answer = VERDICT_NONE;
	enum drop why;

	if (!s)
		return drop_counted(DROP_PROGRAM_MISSING);
	s->now = np_now();
	s->mtu = 0;
	s->reroute = 0;
	s->renew = 0;
	s->alone = 0;
	s->by_other = 0;
	s->first_fragment = 0;
	s->told = is_told(skb, s->hook);
	verdict = slow_packet(skb, s);
	if (verdict == VERDICT_PASS && s->hook == FROM_WORKLOAD)
		mark_set_asked(skb);
	if (!is_dropped(verdict))
		return verdict;
	why = drop_reason(verdict);
	count_slot(why);
	np_trace("drop %d at hook %d, device %d", why, s->hook, skb->ifindex);
	if (reset_wanted(why, s->p.proto))
		answer = reset_answer(skb, s);
	else if (answer_wanted(why))
		answer = icmp_answer(skb, s, why, s->mtu);
	return answer == VERDICT_NONE ? TC_ACT_SHOT : answer;
}

#endif
