/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* The slow path: a flow's first packets, its turns (SYN, FIN, RST, age), and whatever is no plain TCP or UDP. Layer: tc programs.
 * Made of subprograms, and therefore without tail calls of its own. */
#ifndef NP_SLOW_H
#define NP_SLOW_H

#include "new.h"
#include "icmp.h"
#include "neigh.h"
#include "reset.h"

/* The other entry of a translated flow, found by reversing what packets leave as; 0 when there is none. */
static __noinline struct ct_value *flow_peer(struct scratch *s, const struct ct_value *v, __u32 *dir)
{
	struct ct_tuple back, mine;
	struct ct_value *peer;

	if (!((v->leg[0].flags | v->leg[1].flags) & LEG_NAT))
		return 0;
	ct_reverse(&back, &v->out);
	*dir = ct_key_of(&s->peer_key, &back, s->p.proto);
	s->peer_key.lane = v->lane;
	peer = bpf_map_lookup_elem(&np_ct, &s->peer_key);
	/* a client that was given another backend is in its old one's view no more */
	ct_reverse(&mine, &s->p.t);
	return peer && peer->leg[*dir & 1].flags & LEG_NAT && ct_tuple_eq(&peer->out, &mine) ? peer : 0;
}

/* TCP's turns and the flow's age, on both entries of a translated flow. */
static __noinline enum drop flow_track(struct __sk_buff *skb, struct scratch *s, struct ct_value *v)
{
	struct ct_leg *leg = &v->leg[s->dir & 1], *other = &v->leg[!(s->dir & 1)];
	struct syn_options o;
	struct ct_value *peer;
	__u32 peer_dir = 0;

	peer = flow_peer(s, v, &peer_dir);
	if (!peer && leg->flags & LEG_NAT && !(leg->flags & LEG_ANSWER))
		peer_restore(s, v);
	if (peer && leg->flags & LEG_NAT)
		other = &peer->leg[peer_dir & 1];	/* where the other side's packets are seen first */
	if (s->p.tcp_flags & TCP_RST && !ct_rst_in_window(other, &s->p))
		return DROP_TCP_RST_WINDOW;
	if (s->p.tcp_flags & TCP_SYN) {
		syn_options(skb, s, &o);
		leg->wscale = o.wscale;
	}
	if ((s->p.tcp_flags & (TCP_SYN | TCP_ACK)) == TCP_SYN)
		leg->ack = 0; /* a new attempt: what it is refused with knows nothing of the old one */
	v->state = ct_state_after(v->state, &s->p, s->dir);
	if (leg->flags & LEG_HALF && s->p.tcp_flags & TCP_ACK) {
		/* the client has its answer, which did not pass here */
		v->state |= CT_TCP_OPEN;
		leg->flags &= ~LEG_HALF;
	}
	ct_touch(v, s->now);
	ct_note_ack(leg, &s->p);
	if (!peer)
		return DROP_NONE;
	/* peer_dir is the answer's direction in the peer entry: this packet counts for the opposite one */
	peer->state = ct_state_after(peer->state, &s->p, !peer_dir);
	if (s->now > peer->seen + 2 * CT_FRESH_NS) /* its own packets have not been there: it is kept from ending */
		ct_touch(peer, s->now);
	if ((peer->state & CT_TCP_OPEN) || (v->state & CT_TCP_OPEN)) {
		peer->state |= CT_TCP_OPEN;
		v->state |= CT_TCP_OPEN;
	}
	return DROP_NONE;
}

/* What a leg keeps when it is decided again. */
#define LEG_LASTING (LEG_NAT | LEG_TUNNELLED | LEG_DSR | LEG_ANSWER | LEG_INNER | LEG_HALF)

/* Decides a leg that was not, or decides it again. Only answers come undecided: new flows have their leg from the start,
 * and answers follow the decision made for them. */
static __noinline enum drop flow_decide(struct __sk_buff *skb, struct scratch *s, struct ct_value *v)
{
	struct ct_leg *leg = &v->leg[s->dir & 1], next = {};
	__u32 flags = leg->flags;
	struct addr dst;

	next.flags = flags & LEG_LASTING;
	if ((flags & (LEG_ENCAP | LEG_OVERLAY)) == LEG_ENCAP) {
		dst = v->via;
		if (way_by_tunnel(skb, s, v, &next, &dst)) {
			leg->flags = flags & (LEG_LASTING | LEG_ENCAP); /* tried again with the next packet */
			return DROP_NO_ROUTE;
		}
	} else {
		dst = flags & LEG_NAT ? v->out.dst : s->p.t.dst;
		addr_look(&s->dst, &dst);
		s->reroute = s->hook == TO_HOST && flags & LEG_NAT && !addr_eq(&dst, &s->p.t.dst);
		way_by_info(skb, s, v, &next, &dst);
	}
	/* other CPUs read the leg meanwhile: never half of it, and the flags last */
	leg->ifindex = next.ifindex;
	leg->mtu = next.mtu;
	asm volatile("" ::: "memory");
	leg->flags = next.flags;
	return DROP_NONE;
}

/* Does the packet not fit its way? A GSO packet is many that do. Tunnel headers and devices of virtual machines lose the
 * count of its segments (gso_segs 0): then it is known by being longer than what its device can receive at once. */
static __noinline bool flow_too_big(struct __sk_buff *skb, const struct pkt *p, __u32 mtu)
{
	__u32 ifindex = skb->ifindex, came = p->len;
	struct iface *dev;

	if (p->len <= mtu || p->gso)
		return false;
	if (p->tunnelled)
		came += tunnel_overhead(p->v4);
	dev = bpf_map_lookup_elem(&np_ifaces, &ifindex);
	return !dev || came <= dev->mtu;
}

/* What either side of a tunnelled flow sends must fit the tunnel, though answers may go without it. */
static __always_inline void flow_clamp_mss(struct __sk_buff *skb, struct scratch *s, const struct ct_value *v, const struct ct_leg *leg)
{
	const struct ct_leg *other = &v->leg[!(s->dir & 1)];
	__u32 ifindex = skb->ifindex;
	struct iface *dev;

	opaque(ifindex); /* the context is to be read through its own pointer */
	if (!(leg->flags & LEG_STACK))
		ifindex = leg->ifindex;
	if (leg->flags & LEG_ENCAP) {
		clamp_mss(skb, s, leg->mtu);
	} else if (other->flags & LEG_TUNNELLED) {
		dev = bpf_map_lookup_elem(&np_ifaces, &ifindex);
		if (dev && dev->kind == IFACE_HOST)
			clamp_mss(skb, s, dev->mtu - tunnel_overhead(s->p.v4));
	}
}

/* Sends a packet of a flow on its way, deciding its leg first if need be. */
static __noinline int flow_send(struct __sk_buff *skb, struct scratch *s, struct ct_value *v)
{
	struct ct_leg *leg = &v->leg[s->dir & 1];
	struct pkt *p = &s->p;
	void *data, *data_end;
	enum drop why;
	__u32 need;

	if (!(leg->flags & LEG_READY) || (s->renew && !(v->state & CT_FOREIGN))) {
		why = flow_decide(skb, s, v);
		if (why)
			return DROPPED(why);
	}
	s->mtu = leg->mtu;
	if ((hook_is_from(s->hook) && !(leg->flags & LEG_STACK)) || leg->flags & LEG_ENCAP) {
		if (hook_is_from(s->hook) && p->ttl <= 1 && !p->tunnelled)
			return DROPPED(DROP_TTL);
		if (flow_too_big(skb, p, leg->mtu)) {
			if (p->dont_fragment || leg->flags & LEG_ENCAP)
				return DROPPED(DROP_TOO_BIG);
			/* the kernel may cut this one */
			s->v = *v;
			v = &s->v;
			leg = &v->leg[s->dir & 1];
			leg->flags = (leg->flags & LEG_NAT) | LEG_READY | LEG_STACK;
		}
	}
	if (p->tcp_flags & TCP_SYN)
		flow_clamp_mss(skb, s, v, leg);
	data = (void *)(long)skb->data;
	data_end = (void *)(long)skb->data_end;
	/* only these have ports and checksum to rewrite; others, and a datagram's last fragment, may end sooner */
	need = p->l4;
	if (!p->fragment && p->proto == IPPROTO_TCP)
		need += sizeof(struct tcphdr);
	if (!p->fragment && p->proto == IPPROTO_UDP)
		need += sizeof(struct udphdr);
	if (data + need > data_end && bpf_skb_pull_data(skb, need))
		return DROPPED(DROP_SHORT);
	return s->hook == NP_HOOK_IN ? send(skb, p, v, leg, NP_HOOK_IN, true) : send(skb, p, v, leg, NP_HOOK_OUT, true);
}

/* An ICMP error finds the flow it is about and goes the way of its answers. */
static __noinline int icmp_related(struct __sk_buff *skb, struct scratch *s)
{
	struct quoted quoted = {};
	struct ct_value *v;
	struct ct_leg *leg;

	if (quoted_read(skb, &s->p, &quoted))
		return FLOW_NONE; /* about no packet that we could have sent on */
	s->dir = ct_key_of(&s->key, &quoted.t, quoted.proto);
	v = bpf_map_lookup_elem(&np_ct, &s->key);
	if (!v)
		return FLOW_NONE;
	leg = &v->leg[s->dir & 1];
	if (leg->flags & LEG_NAT) {
		enum drop why = icmp_translate(skb, &s->p, &quoted, &v->out);

		if (why)
			return DROPPED(why);
		count_slot(DROP_MAX + COUNT_ICMP_RELATED);
	}
	/* the leg without its translation, which is done */
	s->v = *v;
	leg = &s->v.leg[s->dir & 1];
	leg->flags &= ~LEG_NAT;
	return flow_send(skb, s, &s->v);
}

/* Does the packet belong to another flow with the same addresses and ports: a client's that came by another node, or by a service? */
static __noinline bool flow_is_other(struct scratch *s, struct ct_value *v)
{
	struct ct_leg *leg = &v->leg[s->dir & 1];

	return hook_is_from(s->hook) && !came_its_way(v, leg, s->p.tunnelled ? &s->tunnel_from : 0);
}

/* Has its way changed, rather? Without ports, flows cannot be told apart; and a node may take a connection over from another. */
static __noinline bool flow_has_moved(struct scratch *s, struct ct_value *v)
{
	const struct ct_leg *leg = &v->leg[s->dir & 1];
	bool taken_over = s->p.tunnelled && leg->flags & LEG_TUNNELLED && s->p.proto == IPPROTO_TCP && !pkt_is_syn(&s->p);

	if (!taken_over && pkt_has_ports(&s->p))
		return false;
	if (s->p.tunnelled)
		v->via = s->tunnel_from;
	s->renew = 1;
	return true;
}

/* Has the flow's backend gone, or has its destination become a service's? Connections stay with what they have, as far as there is
 * one; datagrams and attempts to connect move on. */
static __noinline bool flow_is_stale(struct scratch *s, const struct ct_value *v)
{
	const struct ct_leg *leg = &v->leg[s->dir & 1];
	bool udp = s->p.proto == IPPROTO_UDP;
	bool to_backend = leg->flags & LEG_NAT && !(addr_eq(&v->out.dst, &s->p.t.dst) && v->out.dport == s->p.t.dport);
	struct addr_info info = {};
	struct frontend *fe;

	if (leg->flags & LEG_ANSWER || s->p.fragment || (!to_backend && s->hook != FROM_WORKLOAD))
		return false;
	if (!udp && !(pkt_is_syn(&s->p) && !(v->state & CT_TCP_OPEN)))
		return false;
	fe = frontend_find(&s->p.t.dst, s->p.t.dport, s->p.proto, &info, s->hook == FROM_HOST);
	if (!fe)
		return to_backend;
	return !(leg->flags & LEG_NAT) || !backend_stays(choice_of(s, fe), v);
}

/* Takes both entries of a flow out. */
static __noinline void flow_forget(struct scratch *s, const struct ct_value *v)
{
	__u32 dir = 0;

	if (flow_peer(s, v, &dir))
		bpf_map_delete_elem(&np_ct, &s->peer_key);
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

/* Is it still what it was? FLOW_THERE, FLOW_STALE or DROPPED(). */
static __noinline int flow_look_again(struct scratch *s, const struct ct_value *v)
{
	if (flow_is_stale(s, v)) {
		flow_forget(s, v);
		count_slot(DROP_MAX + COUNT_MOVED);
		return FLOW_STALE;
	}
	if (!(v->state & CT_FOREIGN) && pod_is_gone(s, v)) {
		flow_forget(s, v);
		return s->p.proto == IPPROTO_TCP && !pkt_is_syn(&s->p) ? DROPPED(DROP_POD_GONE) : FLOW_STALE;
	}
	return FLOW_THERE;
}

/* Who answers tries to connect itself, by the same addresses and ports. */
static __always_inline bool is_attempt_back(const struct scratch *s, const struct ct_leg *leg)
{
	return leg->flags & LEG_ANSWER && pkt_is_syn(&s->p);
}

/* Of ICMP, last fragments have no type, and answers to others than echoes another than was let be: they follow the decision. */
static __always_inline bool is_let_be(const struct scratch *s, const struct ct_leg *leg)
{
	return pkt_is_icmp(&s->p) && (s->p.fragment || (leg->flags & LEG_ANSWER && pkt_is_message(&s->p)));
}

/* What is to be judged when a flow that is there is judged again: the flow, or an attempt of the other end, by itself. */
static __noinline void judged_again(struct __sk_buff *skb, struct scratch *s, const struct ct_value *v)
{
	const struct ct_leg *leg = &v->leg[s->dir & 1];
	struct judged *j = &s->judged;
	struct ct_tuple back;

	j->hook = v->leg[0].hook;
	j->device = v->device;
	j->by_answer = leg->flags & LEG_ANSWER && !pkt_is_syn(&s->p);
	if (is_attempt_back(s, leg))
		judged_here(skb, s);
	j->t = s->p.t;
	j->before = s->p.t;
	if (j->by_answer) {
		ct_reverse(&back, leg->flags & LEG_NAT ? &v->out : &s->p.t);
		j->before = back;
		j->t = back;
		j->t.dst = s->p.t.src;
		j->t.dport = s->p.t.sport;
		leg = &v->leg[!(s->dir & 1)];
	} else if (leg->flags & LEG_NAT) {
		j->t.dst = v->out.dst;
		j->t.dport = v->out.dport;
	}
	j->way_out = way_out_of(leg);
	addr_look(&s->src, &j->t.src);
	addr_look(&s->dst, &j->t.dst);
}

/* The lane of flows that came as this one did, when another has its addresses and ports. */
static __always_inline __u16 lane_of(const struct scratch *s)
{
	__u16 from = mix_end(mix_addr(0, &s->tunnel_from)); /* nodes' addresses are alike: a sum or XOR of their parts is often the same */

	return !s->p.tunnelled ? 1 : from < 2 ? from + 2 : from;
}

/* The packet's flow, if there is one. */
static __noinline struct ct_value *flow_find(struct scratch *s)
{
	struct ct_value *v = s->known_miss ? 0 : bpf_map_lookup_elem(&np_ct, &s->key), *beside;

	if (v && ct_replaceable(v, &s->p, s->now)) {
		flow_forget(s, v); /* what comes next may not be entered, and its answers are not this flow's */
		v = 0;
	}
	if (v && !flow_is_other(s, v))
		return v;
	if (!v && (s->p.proto != IPPROTO_TCP || pkt_is_syn(&s->p)))
		return 0;
	/* another has this place, or had it */
	s->key.lane = lane_of(s);
	beside = bpf_map_lookup_elem(&np_ct, &s->key);
	if (beside && !ct_replaceable(beside, &s->p, s->now) && !flow_is_other(s, beside))
		return beside;
	if (v && !flow_has_moved(s, v))
		return 0;
	s->key.lane = 0;
	return v;
}

static __noinline int flow_packet(struct __sk_buff *skb, struct scratch *s)
{
	struct ct_value *v = 0;
	enum drop why;
	int act;

	if (cfg.untracked && (s->hook == FROM_HOST || s->hook == TO_HOST) && !s->p.tunnelled) {
		act = untracked_judge(skb, s);
		if (act != RULE_OPEN)
			return act == RULE_ALLOW ? NP_PASS : DROPPED(DROP_POLICY);
	}
	s->dir = ct_key_of(&s->key, &s->p.t, s->p.proto);
	if (hook_is_from(s->hook) && pkt_is_syn(&s->p)) {
		/* where packets enter, a SYN is most likely the first: it is entered at once, which finds out if it is not */
		act = flow_new(skb, s);
		if (act == FLOW_MADE)
			return flow_send(skb, s, &s->v);
		if (act != FLOW_THERE && act != NP_PASS)
			return act;
	}
	v = s->lone_error ? 0 : flow_find(s);
	if (v) {
		s->renew |= !ct_fresh(v) || s->p.tcp_flags & TCP_SYN || v->epoch != policy_epoch() || pkt_is_message(&s->p);
		act = s->renew ? flow_look_again(s, v) : FLOW_THERE;
		if (act == FLOW_STALE)
			v = 0;
		else if (act != FLOW_THERE)
			return act;
	}
	if (!v) {
		act = s->lone_error ? FLOW_PREPARED : flow_prepare(skb, s);
		if (act != FLOW_PREPARED)
			return act;
		judged_new(skb, s);
	} else if (s->renew) {
		judged_again(skb, s, v);
	}
	if (!v || (s->renew && !is_let_be(s, &v->leg[s->dir & 1]))) {
		why = flow_judge(skb, s, v ? v : &s->v);
		if (why && v && !is_attempt_back(s, &v->leg[s->dir & 1]))
			flow_forget(s, v);
		if (why)
			return DROPPED(why);
	}
	if (s->lone_error)
		return NP_PASS;
	if (!v) {
		act = flow_enter(skb, s);
		if (act == FLOW_MADE)
			return flow_send(skb, s, &s->v);
		if (act != FLOW_THERE)
			return act;
		/* made at this moment by another CPU */
		v = bpf_map_lookup_elem(&np_ct, &s->key);
		if (!v)
			return DROPPED(DROP_FLOW_INSERT);
		if (flow_is_other(s, v))
			return DROPPED(DROP_PORT_COLLISION);
		return flow_send(skb, s, v);
	}
	why = flow_track(skb, s, v);
	if (why)
		return DROPPED(why);
	if (s->hook == FROM_WORKLOAD)
		v->leg[!(s->dir & 1)].ifindex = skb->ifindex;
	return flow_send(skb, s, v);
}

/* A fragment before its first: the host puts together its own; a pod's must not pass unseen. */
static __noinline bool fragment_is_ours(struct scratch *s)
{
	struct addr_info *info = bpf_map_lookup_elem(&np_addrs, &s->p.t.dst);

	return s->hook == FROM_WORKLOAD || s->hook == TO_WORKLOAD || (info && (info->kind == ADDR_LOCAL_POD || is_stray(info)));
}

/* What the fast path would not read. 0: go on as a packet of a flow. */
static __noinline int slow_parse(struct __sk_buff *skb, struct scratch *s)
{
	enum drop why;
	__be16 proto;

	__builtin_memset(&s->p, 0, offsetof(struct pkt, tunnelled));
	s->p.fragment = 0;
	s->p.len = pkt_length(skb);
	s->p.gso = skb->gso_segs > 1;
	if (bpf_skb_load_bytes(skb, offsetof(struct ethhdr, h_proto), &proto, sizeof(proto)))
		return DROPPED(DROP_SHORT);
	if (proto == bpf_htons(ETH_P_ARP))
		return s->hook == FROM_WORKLOAD ? arp_answer(skb, s) : NP_PASS;
	if (proto == bpf_htons(ETH_P_IP))
		why = parse_v4(skb, s);
	else if (proto == bpf_htons(ETH_P_IPV6))
		why = parse_v6(skb, s);
	else
		return NP_PASS;
	if (why == DROP_FRAGMENT_UNKNOWN && !fragment_is_ours(s))
		return NP_PASS;
	if (why)
		return DROPPED(why);
	if (icmp_is_link_local(skb, &s->p))
		return s->hook == FROM_WORKLOAD ? nd_answer(skb, s) : NP_PASS;
	return 0;
}

/* A pod sends with its own address only, beside what stays on its link. 0: go on. */
static __noinline int source_own(struct __sk_buff *skb, struct scratch *s)
{
	struct addr_info *info = bpf_map_lookup_elem(&np_addrs, &s->p.t.src);

	if (info && info->kind == ADDR_LOCAL_POD && info->ifindex == skb->ifindex) {
		s->src = *info;
		return 0;
	}
	return addr_is_link_local(&s->p.t.src) && addr_is_link_local(&s->p.t.dst) ? NP_PASS : DROPPED(DROP_SPOOFED);
}

static __always_inline int slow_packet(struct __sk_buff *skb, struct scratch *s)
{
	int act = s->parsed ? 0 : slow_parse(skb, s);

	if (act)
		return act;
	if (addr_is_multicast(&s->p.t.dst, s->p.v4))
		return NP_PASS;
	if (s->hook == FROM_WORKLOAD) {
		act = source_own(skb, s);
		if (act)
			return act;
	}
	if (s->parsed)
		return flow_packet(skb, s);
	if (s->first_fragment)
		fragment_note(s);
	if (icmp_is_error(skb, &s->p)) {
		act = icmp_related(skb, s);
		if (act != FLOW_NONE)
			return act;
		addr_look(&s->dst, &s->p.t.dst);
		if (hook_is_from(s->hook) && is_stray(&s->dst))
			return DROPPED(DROP_STRAY_SERVICE);
		__builtin_memset(&s->v, 0, sizeof(s->v));
		s->lone_error = 1;
	}
	return flow_packet(skb, s);
}

static __always_inline int slow_path(struct __sk_buff *skb, const enum hook hook)
{
	struct scratch *s = scratch_take();
	enum drop why;
	int act;

	if (!s)
		return drop_counted(DROP_PROGRAM_MISSING);
	s->hook = hook;
	s->now = np_now();
	s->mtu = 0;
	s->reroute = 0;
	s->renew = 0;
	s->lone_error = 0;
	s->first_fragment = 0;
	act = slow_packet(skb, s);
	if (!IS_DROPPED(act))
		return act;
	why = DROP_REASON(act);
	count_slot(why);
	act = reset_wanted(why, s->p.proto) ? reset_answer(skb, s) : answer_wanted(why) ? icmp_answer(skb, s, why, s->mtu) : 0;
	if (act)
		return act;
	return TC_ACT_SHOT;
}

#endif
