/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* Packets of a flow that is there: counted, their way decided, sent. Layer: slow paths. */
#ifndef NP_CONNTRACK_UPDATE_H
#define NP_CONNTRACK_UPDATE_H

#include "conntrack/create.h"
#include "maps/events.h"

/* TCP's turns and the flow's age, on both entries of a translated flow. Reads key; writes draft, dst, syn. */
static __noinline enum drop flow_track(struct __sk_buff *skb, struct scratch *s, struct ct_value *v)
{
	struct ct_leg *leg = &v->leg[s->dir & 1], *other = &v->leg[opposite(s->dir)];
	struct ct_value *peer;
	struct ct_tuple back;
	__u32 peer_dir = 0;
	bool was_closing;

	ct_reverse(&back, &s->p.t);
	peer = flow_peer(s, v, &back, &peer_dir);
	if (!peer && leg->flags & LEG_NAT && !(leg->flags & LEG_ANSWER))
		peer_restore(s, v);
	if (peer && leg->flags & LEG_NAT)
		other = &peer->leg[peer_dir & 1]; /* where the other side's packets are seen first */
	if (s->p.tcp_flags & TCP_RST && !ct_rst_in_window(other, &s->p))
		return DROP_TCP_RST_WINDOW;
	if (s->p.tcp_flags & TCP_SYN) {
		syn_options(skb);
		leg->wscale = s->syn.wscale;
	}
	if ((s->p.tcp_flags & (TCP_SYN | TCP_ACK)) == TCP_SYN)
		leg->ack = 0; /* a new attempt: what it is refused with knows nothing of the old one */
	was_closing = ct_closing(v);
	ct_track(v, &s->p, s->dir);
	if (s->p.proto == IPPROTO_TCP && !was_closing && ct_closing(v) && accounts()) {
		judged_flow(s, v);
		s->is_judged = 1;
		event_tell(skb, EVENT_ENDED, DROP_NONE);
	}
	v->state |= brought_bit(s);
	ct_touch(v, s->now);
	ct_note_ack(leg, &s->p);
	ct_account(skb, leg, &s->p, s->hook);
	if (!peer)
		return DROP_NONE;
	/* peer_dir is the answer's direction in the peer entry: this packet counts for the opposite one */
	ct_track(peer, &s->p, opposite(peer_dir));
	if (s->now > peer->seen + 2 * CT_FRESH_NS) /* its own packets have not been there: it is kept from ending */
		ct_touch(peer, s->now);
	if ((peer->state & CT_TCP_OPEN) || (v->state & CT_TCP_OPEN)) {
		peer->state |= CT_TCP_OPEN;
		v->state |= CT_TCP_OPEN;
	}
	return DROP_NONE;
}

/* What a leg keeps when it is decided again. */
#define LEG_LASTING \
	(LEG_NAT | LEG_TUNNELLED | LEG_DSR | LEG_ANSWER | LEG_INNER | LEG_OPENING | LEG_BY_TUNNEL | LEG_BY_NODE)

/* Decides a leg that was not, or decides it again. Only answers come undecided: new flows have their leg from the
 * start, and answers follow the decision made for them. Writes dst, reroute, fib. */
static __noinline enum drop flow_decide(struct __sk_buff *skb, struct scratch *s, struct ct_value *v)
{
	struct ct_leg *leg = &v->leg[s->dir & 1], next = {};
	__u32 flags = leg->flags;
	struct addr dst;

	next.flags = flags & LEG_LASTING;
	if (!hook_is_from(s->hook))
		next.ifindex = leg->ifindex; /* on its way out: the device whose rules it has passed */
	if ((flags & (LEG_ENCAP | LEG_OVERLAY)) == LEG_ENCAP) {
		dst = v->via;
		if (way_by_tunnel(skb, s, v, &next, &dst)) {
			leg->flags = flags & (LEG_LASTING | LEG_ENCAP); /* tried again with the next packet */
			return DROP_NO_ROUTE;
		}
	} else {
		dst = flags & LEG_NAT ? v->out.dst : s->p.t.dst;
		addr_look(&s->dst, &dst);
		s->reroute = s->hook == TO_HOST && ((flags & LEG_NAT && !addr_eq(&dst, &s->p.t.dst)) ||
						    (!(flags & LEG_ANSWER) && in_overlay(s, &dst)));
		way_by_info(skb, s, v, &next, &dst);
	}
	/* other CPUs read the leg meanwhile: never half of it, and the flags last */
	leg->ifindex = next.ifindex;
	leg->mtu = next.mtu;
	asm volatile("" ::: "memory");
	leg->flags = next.flags;
	if (next.flags & LEG_OVERLAY && !(v->leg[opposite(s->dir)].flags & LEG_TUNNELLED)) {
		v->leg[opposite(s->dir)].flags |= LEG_TUNNELLED;
		v->state &= ~ct_seen_bit(opposite(s->dir)); /* not this way yet: the first is looked at */
	}
	return DROP_NONE;
}

/* Does the packet not fit its way? A GSO packet is many that do. Tunnel headers and devices of virtual machines
 * lose the count of its segments (gso_segs 0): then it is known by being longer than what its device can receive at
 * once. */
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

/* MSS clamping: what either side of a tunnelled flow sends must fit the tunnel, though answers may go without it. A
 * flow without a tunnel needs none, its ends' own devices say what fits. Writes syn. */
static __always_inline void flow_clamp_mss(struct __sk_buff *skb, struct scratch *s, const struct ct_value *v,
					   const struct ct_leg *leg)
{
	const struct ct_leg *other = &v->leg[opposite(s->dir)];
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

/* Sends a packet of the flow in s->draft.v, whose leg is decided, on its way. Reads draft.v; writes mtu, syn. */
NP_GLOBAL enum verdict send_decided(struct __sk_buff *skb)
{
	struct scratch *s = scratch_take();
	void *data, *data_end;
	struct ct_value *v;
	struct ct_leg *leg;
	struct pkt *p;
	__u32 need;

	if (!s)
		return dropped(DROP_PROGRAM_MISSING);
	v = &s->draft.v;
	leg = &v->leg[s->dir & 1];
	p = &s->p;
	s->mtu = leg->mtu;
	if ((hook_is_from(s->hook) && !(leg->flags & LEG_STACK)) || leg->flags & LEG_ENCAP) {
		if (hook_is_from(s->hook) && p->ttl <= 1 && !p->tunnelled)
			return dropped(DROP_TTL);
		if (flow_too_big(skb, p, leg->mtu)) {
			if (p->dont_fragment || leg->flags & LEG_ENCAP)
				return dropped(DROP_TOO_BIG);
			/* the kernel may cut this one */
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
		return dropped(DROP_SHORT);
	switch (s->hook) {
	case FROM_WORKLOAD:
		return send(skb, p, v, leg, FROM_WORKLOAD, true);
	case TO_WORKLOAD:
		return send(skb, p, v, leg, TO_WORKLOAD, true);
	case FROM_HOST:
		return send(skb, p, v, leg, FROM_HOST, true);
	default:
		return send(skb, p, v, leg, TO_HOST, true);
	}
}

/* Sends a packet of a flow on its way, deciding its leg first if need be.
 * Reads renew; writes draft.v, dst, reroute, mtu. */
static __noinline enum verdict flow_send(struct __sk_buff *skb, struct scratch *s, struct ct_value *v)
{
	enum drop why;

	if (!(v->leg[s->dir & 1].flags & LEG_READY) || (s->renew && !(v->state & CT_FOREIGN))) {
		why = flow_decide(skb, s, v);
		if (why)
			return dropped(why);
	}
	if (v != &s->draft.v)
		s->draft.v = *v;
	return send_decided(skb);
}

#endif
