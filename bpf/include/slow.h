/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* The slow path: a flow's first packets, its turns (SYN, FIN, RST, age), and whatever is no plain TCP or UDP. Layer: tc programs.
 * Made of subprograms, and therefore without tail calls of its own. */
#ifndef NP_SLOW_H
#define NP_SLOW_H

#include "new.h"
#include "icmp.h"
#include "neigh.h"

/* The other entry of a translated flow, found by reversing what packets leave as; 0 when there is none. */
static __noinline struct ct_value *flow_peer(struct scratch *s, const struct ct_value *v, __u32 *dir)
{
	struct ct_tuple back;

	if (!((v->leg[0].flags | v->leg[1].flags) & LEG_NAT))
		return 0;
	ct_reverse(&back, &v->out);
	*dir = ct_key_of(&s->peer_key, &back, s->p.proto);
	return bpf_map_lookup_elem(&np_ct, &s->peer_key);
}

/* TCP's turns and the flow's age, on both entries of a translated flow. */
static __noinline enum drop flow_track(struct __sk_buff *skb, struct scratch *s, struct ct_value *v)
{
	struct ct_leg *leg = &v->leg[s->dir & 1], *other = &v->leg[!(s->dir & 1)];
	struct syn_options o;
	struct ct_value *peer;
	__u32 peer_dir = 0;

	peer = flow_peer(s, v, &peer_dir);
	/* the client's view is the one that changes the destination; a plain entry is what answers made meanwhile */
	if (leg->flags & LEG_NAT && !addr_eq(&v->out.dst, &s->p.t.dst) &&
	    (!peer || !((peer->leg[0].flags | peer->leg[1].flags) & LEG_NAT))) {
		peer_restore(s, v);
		peer = 0;
	}
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
	ct_touch(v, s->now);
	ct_note_ack(leg, &s->p);
	if (!peer)
		return DROP_NONE;
	/* peer_dir is the answer's direction in the peer entry: this packet counts for the opposite one */
	peer->state = ct_state_after(peer->state, &s->p, !peer_dir);
	ct_touch(peer, s->now);
	if ((peer->state & CT_TCP_OPEN) || (v->state & CT_TCP_OPEN)) {
		peer->state |= CT_TCP_OPEN;
		v->state |= CT_TCP_OPEN;
	}
	return DROP_NONE;
}

/* Decides a leg that was not, or decides it again. Only answers come undecided: new flows have their leg from the start,
 * and answers follow the decision made for them. */
static __noinline enum drop flow_decide(struct __sk_buff *skb, struct scratch *s, struct ct_value *v)
{
	struct ct_leg *leg = &v->leg[s->dir & 1], next = {};
	__u32 flags = leg->flags;
	struct addr dst;

	next.flags = flags & LEG_NAT;
	if (flags & LEG_ENCAP) {
		dst = v->via;
		if (way_by_tunnel(skb, s, v, &next, &dst)) {
			leg->flags = flags & (LEG_NAT | LEG_ENCAP); /* tried again with the next packet */
			return DROP_NO_ROUTE;
		}
	} else {
		dst = flags & LEG_NAT ? v->out.dst : s->p.t.dst;
		s->reroute = s->hook == TO_HOST && !(flags & LEG_STACK) && flags & LEG_READY;
		way_to(skb, s, &next, &dst);
	}
	if (!(flags & LEG_READY) || (flags & LEG_APPROVED && next.ifindex == leg->ifindex))
		next.flags |= LEG_APPROVED;
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

/* Sends a packet of a flow on its way, deciding its leg first if need be. */
static __noinline int flow_send(struct __sk_buff *skb, struct scratch *s, struct ct_value *v)
{
	struct ct_leg *leg = &v->leg[s->dir & 1];
	struct pkt *p = &s->p;
	void *data, *data_end;
	__u32 need;

	if ((!(leg->flags & LEG_READY) || s->renew) && flow_decide(skb, s, v))
		return DROPPED(DROP_NO_ROUTE);
	s->mtu = leg->mtu;
	if (s->hook == TO_WORKLOAD && !(leg->flags & LEG_APPROVED))
		flow_approve(v, s->dir, s->p.proto);
	if (hook_is_from(s->hook) && !(leg->flags & LEG_STACK)) {
		if (p->ttl <= 1)
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
	if (p->tcp_flags & TCP_SYN && leg->flags & LEG_ENCAP)
		clamp_mss(skb, s, leg->mtu);
	data = (void *)(long)skb->data;
	data_end = (void *)(long)skb->data_end;
	/* only these have ports to rewrite; others, and a datagram's last fragment, may end sooner */
	need = p->l4 + (!p->fragment && (p->proto == IPPROTO_TCP || p->proto == IPPROTO_UDP) ? 8 : 0);
	if (data + need > data_end && bpf_skb_pull_data(skb, need))
		return DROPPED(DROP_SHORT);
	switch (s->hook) {
	case FROM_WORKLOAD:
		return send(skb, p, v, leg, FROM_WORKLOAD);
	case FROM_HOST:
		return send(skb, p, v, leg, FROM_HOST);
	case TO_WORKLOAD:
		return send(skb, p, v, leg, TO_WORKLOAD);
	}
	return send(skb, p, v, leg, TO_HOST);
}

/* An ICMP error finds the flow it is about and goes the way of its answers. */
static __noinline int icmp_related(struct __sk_buff *skb, struct scratch *s)
{
	struct ct_tuple was;
	struct ct_value *v;
	struct ct_leg *leg;
	__u16 inner_l4 = 0;
	__u8 proto = 0;

	if (quoted_tuple(skb, &s->p, &was, &proto, &inner_l4))
		return NP_PASS; /* about no packet that we could have sent on */
	s->dir = ct_key_of(&s->key, &was, proto);
	v = bpf_map_lookup_elem(&np_ct, &s->key);
	if (!v)
		return NP_PASS;
	leg = &v->leg[s->dir & 1];
	if (leg->flags & LEG_NAT) {
		enum drop why = icmp_translate(skb, &s->p, &was, &v->out, inner_l4);

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

/* A packet of a flow that is there. */
static __noinline int flow_known(struct __sk_buff *skb, struct scratch *s, struct ct_value *v)
{
	enum drop why;

	s->renew = !ct_fresh(v) || s->p.tcp_flags & TCP_SYN;
	why = flow_track(skb, s, v);
	if (why)
		return DROPPED(why);
	return flow_send(skb, s, v);
}

static __noinline int flow_packet(struct __sk_buff *skb, struct scratch *s)
{
	struct ct_value *v = 0;
	int act;

	s->dir = ct_key_of(&s->key, &s->p.t, s->p.proto);
	/* where packets enter, a SYN is most likely the first: it is entered at once, which finds out if it is not */
	if (!s->known_miss && !(hook_is_from(s->hook) && (s->p.tcp_flags & (TCP_SYN | TCP_ACK)) == TCP_SYN))
		v = bpf_map_lookup_elem(&np_ct, &s->key);
	if (v && !ct_replaceable(v, &s->p, s->now))
		return flow_known(skb, s, v);
	act = flow_new(skb, s);
	if (act == FLOW_MADE)
		return flow_send(skb, s, &s->v);
	if (act != FLOW_THERE)
		return act;
	v = bpf_map_lookup_elem(&np_ct, &s->key);
	return v ? flow_known(skb, s, v) : DROPPED(DROP_FLOW_INSERT);
}

/* A fragment before its first: the host puts together its own; a pod's must not pass unseen. */
static __noinline bool fragment_is_ours(struct scratch *s)
{
	struct addr_info *info = bpf_map_lookup_elem(&np_addrs, &s->p.t.dst);

	return s->hook == FROM_WORKLOAD || s->hook == TO_WORKLOAD || (info && info->kind == ADDR_LOCAL_POD);
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
		why = parse_v4(skb, &s->p);
	else if (proto == bpf_htons(ETH_P_IPV6))
		why = parse_v6(skb, &s->p);
	else
		return NP_PASS;
	if (why == DROP_FRAGMENT_UNKNOWN && !fragment_is_ours(s))
		return NP_PASS;
	if (why)
		return DROPPED(why);
	if (icmp_is_link_local(skb, &s->p))
		return s->hook == FROM_WORKLOAD ? nd_answer(skb, s) : NP_PASS;
	return icmp_is_error(skb, &s->p) ? icmp_related(skb, s) : 0;
}

static __always_inline int slow_packet(struct __sk_buff *skb, struct scratch *s)
{
	int act = s->parsed ? 0 : slow_parse(skb, s);

	if (act)
		return act;
	if (addr_is_multicast(&s->p.t.dst, s->p.v4))
		return NP_PASS;
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
	act = slow_packet(skb, s);
	if (!IS_DROPPED(act))
		return act;
	why = DROP_REASON(act);
	count_slot(why);
	if (why == DROP_TTL || why == DROP_TOO_BIG || why == DROP_NO_BACKEND) {
		act = icmp_answer(skb, s, why, s->mtu);
		if (act)
			return act;
	}
	return TC_ACT_SHOT;
}

#endif
