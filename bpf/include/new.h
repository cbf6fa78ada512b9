/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* A flow's first packet: service, backend, way, entries. Layer: slow paths. */
#ifndef NP_NEW_H
#define NP_NEW_H

#include "way.h"
#include "service.h"
#include "options.h"

#define PORT_TRIES 16

/* What making a flow ends in, beside TC actions and DROPPED(). */
#define FLOW_MADE 0x100		/* s->v is in the table */
#define FLOW_THERE 0x101	/* it was there already */

/* Enters s->v under the packet's own tuple, unless a live flow is there. */
static __noinline int flow_enter(struct __sk_buff *skb, struct scratch *s)
{
	struct ct_value *v = &s->v, *known;
	struct syn_options o;

	ct_touch(v, s->now);
	v->state = ct_state_after(0, &s->p, s->dir);
	if (s->p.tcp_flags & TCP_SYN) {
		syn_options(skb, s, &o);
		v->leg[s->dir & 1].wscale = o.wscale;
	}
	ct_note_ack(&v->leg[s->dir & 1], &s->p);
	if (!bpf_map_update_elem(&np_ct, &s->key, v, BPF_NOEXIST))
		return FLOW_MADE;
	known = bpf_map_lookup_elem(&np_ct, &s->key);
	if (known && !ct_replaceable(known, &s->p, s->now))
		return FLOW_THERE;
	return bpf_map_update_elem(&np_ct, &s->key, v, BPF_ANY) ? DROPPED(DROP_FLOW_INSERT) : FLOW_MADE;
}

/* Enters the flow of a packet that is not translated. The answer's way is decided when it comes. */
static __noinline int flow_new_plain(struct __sk_buff *skb, struct scratch *s)
{
	struct ct_value *v = &s->v;
	struct ct_leg *leg = &v->leg[s->dir & 1], *back = &v->leg[!(s->dir & 1)];

	if (s->hook == FROM_HOST && s->dst.kind != ADDR_LOCAL_POD && !s->p.tunnelled)
		return NP_PASS; /* not for a pod and no service: other traffic is left alone */
	way_by_info(skb, s, leg, &s->dst, &s->p.t.dst);
	if (s->p.tunnelled && (!(leg->flags & (LEG_POD | LEG_STACK)) || way_by_tunnel(skb, s, v, back, &s->tunnel_from)))
		return DROPPED(DROP_NO_ROUTE);
	if (s->hook == TO_WORKLOAD)
		leg->flags |= LEG_APPROVED;
	count_slot(DROP_MAX + (s->p.tunnelled ? COUNT_TUNNEL_TAKEN : COUNT_FLOW_NEW));
	return flow_enter(skb, s);
}

/* Makes the backend's view in s->peer from what packets leave as; returns its direction for answers. */
static __noinline __u32 peer_make(struct scratch *s)
{
	struct ct_value *peer = &s->peer;
	struct ct_tuple back;
	__u32 dir;

	ct_reverse(&back, &s->v.out);
	dir = ct_key_of(&s->peer_key, &back, s->p.proto);
	__builtin_memset(peer, 0, sizeof(*peer));
	ct_reverse(&peer->out, &s->p.t);
	peer->leg[dir & 1].flags = LEG_NAT;
	ct_touch(peer, s->now);
	peer->state = ct_seen_bit(!dir);
	return dir;
}

/* A full table may have lost the backend's view alone: the client's next packet brings it back. */
static __noinline void peer_restore(struct scratch *s, const struct ct_value *v)
{
	s->v.out = v->out;
	peer_make(s);
	s->peer.state |= v->state & CT_TCP_OPEN;
	bpf_map_update_elem(&np_ct, &s->peer_key, &s->peer, BPF_ANY);
}

/* Enters the way back of a translated flow: packets from the backend leave as the service's. The backend's view of the
 * client must be its own: if another flow has the same, the client's port is changed. */
static __noinline enum drop flow_enter_peer(struct scratch *s)
{
	struct ct_value *known, *peer = &s->peer;
	__u32 dir;

	for (int i = 0; i < PORT_TRIES; i++) {
		dir = peer_make(s);
		if (!bpf_map_update_elem(&np_ct, &s->peer_key, peer, BPF_NOEXIST))
			return DROP_NONE;
		known = bpf_map_lookup_elem(&np_ct, &s->peer_key);
		if (!known)
			return DROP_FLOW_INSERT;
		if (ct_replaceable(known, &s->p, s->now) ||
		    ((known->leg[dir & 1].flags & LEG_NAT) && ct_tuple_eq(&known->out, &peer->out))) {
			if (bpf_map_update_elem(&np_ct, &s->peer_key, peer, BPF_ANY))
				return DROP_FLOW_INSERT;
			return DROP_NONE;
		}
		s->v.out.sport = bpf_htons(32768 + (bpf_get_prandom_u32() & 0x7fff));
	}
	return DROP_PORT_COLLISION;
}

/* A backend, and the way to it: in the tunnel when it is on another node and the client is outside, so that the answer
 * comes back through this node; by route otherwise. */
static __noinline int flow_new_service(struct __sk_buff *skb, struct scratch *s, const struct frontend *fe)
{
	struct ct_value *v = &s->v;
	struct ct_leg *leg = &v->leg[s->dir & 1];
	struct backend *be;
	__be16 sport;
	enum drop why;
	int act;

	if (s->p.proto == IPPROTO_TCP && (s->p.tcp_flags & (TCP_SYN | TCP_ACK)) != TCP_SYN)
		return DROPPED(DROP_NO_FLOW);
	be = backend_choose(fe);
	if (!be)
		return DROPPED(DROP_NO_BACKEND);
	v->out.src = s->p.t.src;
	v->out.sport = s->p.t.sport;
	v->out.dst = be->addr;
	v->out.dport = be->port;
	if (addr_eq(&be->addr, &s->p.t.src))
		v->out.src = s->p.t.dst; /* to oneself: the answer must pass here to be translated back */
	leg->flags = LEG_NAT;
	if (s->hook == FROM_HOST && !addr_is_zero(&be->node)) {
		if (way_by_tunnel(skb, s, v, leg, &be->node))
			return DROPPED(DROP_NO_ROUTE);
		count_slot(DROP_MAX + COUNT_TUNNEL_SENT);
	} else {
		s->reroute = s->hook == TO_HOST;
		way_to(skb, s, leg, &v->out.dst);
	}
	count_slot(DROP_MAX + COUNT_FLOW_SERVICE);
	act = flow_enter(skb, s);
	if (act != FLOW_MADE)
		return act;
	sport = v->out.sport;
	why = flow_enter_peer(s);
	if (why) {
		bpf_map_delete_elem(&np_ct, &s->key); /* half a flow would lead the next packet astray */
		return DROPPED(why);
	}
	if (v->out.sport != sport && bpf_map_update_elem(&np_ct, &s->key, v, BPF_ANY))
		return DROPPED(DROP_FLOW_INSERT);
	return FLOW_MADE;
}

/* Makes the flow in s->v. Returns FLOW_MADE, FLOW_THERE, a TC action or DROPPED(). */
static __always_inline int flow_new(struct __sk_buff *skb, struct scratch *s)
{
	struct addr_info *info;
	struct frontend *fe = 0;

	__builtin_memset(&s->v, 0, sizeof(s->v));
	__builtin_memset(&s->dst, 0, sizeof(s->dst));
	if (s->hook == TO_WORKLOAD || s->p.tunnelled || s->p.fragment) {
		info = bpf_map_lookup_elem(&np_addrs, &s->p.t.dst);
		if (info)
			s->dst = *info;
	} else {
		fe = frontend_find(&s->p.t.dst, s->p.t.dport, s->p.proto, &s->dst);
	}
	if (fe)
		return flow_new_service(skb, s, fe);
	if (s->hook == FROM_WORKLOAD && s->p.proto == IPPROTO_UDP && s->p.t.dport == cfg.tunnel_port &&
	    (s->dst.kind == ADDR_NODE || s->dst.kind == ADDR_SELF))
		return DROPPED(DROP_TUNNEL_SOURCE); /* a pod that plays a node */
	if (s->hook == TO_HOST)
		return NP_PASS; /* the host's own traffic */
	return flow_new_plain(skb, s);
}

#endif
