/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* A flow's first packet: service, backend, way, entries. Layer: slow paths. */
#ifndef NP_NEW_H
#define NP_NEW_H

#include "way.h"
#include "pick.h"
#include "options.h"
#include "judge.h"

#define PORT_TRIES 32

/* What looking for or making a flow ends in, beside TC actions and DROPPED(). */
#define FLOW_PREPARED 0x0ff	/* s->v is ready to be entered */
#define FLOW_MADE 0x100		/* s->v is in the table */
#define FLOW_THERE 0x101	/* it was there already */
#define FLOW_STALE 0x102	/* its backend is gone: it is to be made anew */
#define FLOW_NONE 0x103		/* the error is about none of ours */

static __always_inline bool pkt_is_syn(const struct pkt *p)
{
	return (p->tcp_flags & (TCP_SYN | TCP_ACK)) == TCP_SYN;
}

/* Enters s->v under the packet's own tuple, unless a live flow is there. */
static __noinline int flow_enter_own(struct __sk_buff *skb, struct scratch *s)
{
	struct ct_leg *leg = &s->v.leg[s->dir & 1], *back = &s->v.leg[!(s->dir & 1)];
	struct ct_value *v = &s->v, *known;
	struct syn_options o;

	ct_touch(v, s->now);
	v->state |= ct_state_after(0, &s->p, s->dir);
	back->flags |= LEG_ANSWER;
	if (s->hook == FROM_WORKLOAD)
		back->ifindex = skb->ifindex;
	if (s->p.tcp_flags & TCP_SYN) {
		syn_options(skb, s, &o);
		leg->wscale = o.wscale;
	} else {
		leg->wscale = WSCALE_UNKNOWN; /* picked up on its way */
	}
	back->wscale = WSCALE_UNKNOWN;
	ct_note_ack(leg, &s->p);
	if (!bpf_map_update_elem(&np_ct, &s->key, v, BPF_NOEXIST))
		return FLOW_MADE;
	known = bpf_map_lookup_elem(&np_ct, &s->key);
	if (known && !ct_replaceable(known, &s->p, s->now))
		return FLOW_THERE;
	return bpf_map_update_elem(&np_ct, &s->key, v, BPF_ANY) ? DROPPED(DROP_FLOW_INSERT) : FLOW_MADE;
}

/* Makes the backend's view in s->peer from what packets leave as; returns its direction for answers. */
static __noinline __u32 peer_make(struct scratch *s, const struct ct_value *v)
{
	struct ct_value *peer = &s->peer;
	struct ct_tuple back;
	__u32 dir;

	ct_reverse(&back, &v->out);
	dir = ct_key_of(&s->peer_key, &back, s->p.proto);
	__builtin_memset(peer, 0, sizeof(*peer));
	ct_reverse(&peer->out, &s->p.t);
	peer->lane = s->key.lane;
	peer->epoch = v->epoch;
	peer->egress_rule = v->egress_rule;
	peer->ingress_rule = v->ingress_rule;
	peer->staged_egress_rule = v->staged_egress_rule;
	peer->staged_ingress_rule = v->staged_ingress_rule;
	peer->device = v->device;
	peer->leg[0].hook = v->leg[0].hook;
	peer->leg[1].hook = v->leg[0].hook;
	peer->leg[dir & 1].flags = LEG_NAT | LEG_ANSWER;
	peer->leg[!(dir & 1)].flags = LEG_INNER;
	peer->leg[!(dir & 1)].ifindex = v->leg[s->dir & 1].ifindex;
	if (s->p.tunnelled) {
		peer->via = s->tunnel_from;
		peer->leg[dir & 1].flags |= LEG_ENCAP;
		if (s->p.origin) {
			peer->leg[dir & 1].flags &= ~LEG_ENCAP;
			peer->out.src = s->origin.addr;
			peer->out.sport = s->origin.port;
		}
	}
	peer->leg[0].wscale = WSCALE_UNKNOWN;
	peer->leg[1].wscale = WSCALE_UNKNOWN;
	ct_touch(peer, s->now);
	peer->state = ct_seen_bit(!dir) | (v->state & CT_TCP_OPEN);
	return dir;
}

/* A full table may have lost the backend's view alone: the client's next packet brings it back. */
static __noinline void peer_restore(struct scratch *s, const struct ct_value *v)
{
	peer_make(s, v);
	bpf_map_update_elem(&np_ct, &s->peer_key, &s->peer, BPF_NOEXIST);
}

/* A source port of those that are kept for this, which the node's own sockets do not use. An echo has its id in both ports. */
static __always_inline void port_change(struct scratch *s)
{
	struct ct_tuple *out = &s->v.out;

	out->sport = bpf_htons(cfg.nat_port_min + bpf_get_prandom_u32() % (cfg.nat_port_count ? cfg.nat_port_count : 1));
	if (s->p.proto == IPPROTO_ICMP || s->p.proto == IPPROTO_ICMPV6)
		out->dport = out->sport;
}

/* Looks for a port with which the backend's view is free; the last one tried need not be. The order of the key's addresses does
 * not depend on it, but where both are the same: then it is as good as any. */
static __noinline void port_find(struct scratch *s, __u32 dir)
{
	struct ct_key *k = &s->peer_key;

	for (int i = 0; i < PORT_TRIES; i++) {
		port_change(s);
		if (dir || s->v.out.dport == s->v.out.sport)
			k->lo_port = s->v.out.sport;
		if (!dir || s->v.out.dport == s->v.out.sport)
			k->hi_port = s->v.out.sport;
		if (!bpf_map_lookup_elem(&np_ct, k))
			return;
	}
}

/* Enters the way back of a translated flow: packets from the backend leave as the service's. The backend's view of the
 * client must be its own: if another flow has the same, the client's port is changed. */
static __noinline enum drop flow_enter_peer(struct scratch *s)
{
	struct ct_value *known, *peer = &s->peer;
	__u32 dir = peer_make(s, &s->v);

	if (!bpf_map_update_elem(&np_ct, &s->peer_key, peer, BPF_NOEXIST))
		return DROP_NONE;
	known = bpf_map_lookup_elem(&np_ct, &s->peer_key);
	if (!known)
		return DROP_FLOW_INSERT;
	if (ct_replaceable(known, &s->p, s->now) ||
	    (known->leg[dir & 1].flags & LEG_NAT && known->lane == peer->lane && ct_tuple_eq(&known->out, &peer->out)))
		return bpf_map_update_elem(&np_ct, &s->peer_key, peer, BPF_ANY) ? DROP_FLOW_INSERT : DROP_NONE;
	port_find(s, dir);
	peer_make(s, &s->v);
	return bpf_map_update_elem(&np_ct, &s->peer_key, peer, BPF_NOEXIST) ? DROP_PORT_COLLISION : DROP_NONE;
}

/* Enters the flow in s->v, and its peer if it is translated. */
static __noinline int flow_enter(struct __sk_buff *skb, struct scratch *s)
{
	int act = flow_enter_own(skb, s);
	enum drop why;
	__be16 sport;

	if (act != FLOW_MADE || !(s->v.leg[s->dir & 1].flags & LEG_NAT))
		return act;
	sport = s->v.out.sport;
	why = flow_enter_peer(s);
	if (why) {
		bpf_map_delete_elem(&np_ct, &s->key); /* half a flow would lead the next packet astray */
		return DROPPED(why);
	}
	if (s->v.out.sport != sport && bpf_map_update_elem(&np_ct, &s->key, &s->v, BPF_ANY))
		return DROPPED(DROP_FLOW_INSERT);
	return FLOW_MADE;
}

/* The flow of a packet that is not translated. The answer's way is decided when it comes. */
static __noinline int prepare_plain(struct __sk_buff *skb, struct scratch *s)
{
	struct ct_value *v = &s->v;
	struct ct_leg *leg = &v->leg[s->dir & 1], *back = &v->leg[!(s->dir & 1)];
	bool to_itself;

	if (s->p.tunnelled) {
		if (s->dst.kind != ADDR_LOCAL_POD && s->dst.kind != ADDR_SELF)
			return DROPPED(DROP_NO_ROUTE);
		if (!s->p.origin && way_by_tunnel(skb, s, v, back, &s->tunnel_from))
			return DROPPED(DROP_NO_ROUTE);
		v->via = s->tunnel_from;
		leg->flags = LEG_TUNNELLED;
	}
	way_by_info(skb, s, v, leg, &s->p.t.dst);
	count_slot(DROP_MAX + (s->p.tunnelled ? COUNT_TUNNEL_TAKEN : COUNT_FLOW_NEW));
	to_itself = s->p.tunnelled && addr_eq(&s->p.t.src, &s->p.t.dst);
	if (s->key.lane || to_itself) {
		/* Another flow has these addresses and ports: to its destination this one comes from another port. Or a backend has
		 * reached itself by another node: it would take nothing from its own address, so it comes from that node. */
		v->out = s->p.t;
		if (to_itself)
			v->out.src = s->tunnel_from;
		leg->flags |= LEG_NAT;
		back->flags = 0;
		return FLOW_PREPARED;
	}
	if (s->p.origin) {
		ct_reverse(&v->out, &s->p.t);
		v->out.src = s->origin.addr;
		v->out.sport = s->origin.port;
		back->flags = LEG_NAT;
		count_slot(DROP_MAX + COUNT_DSR);
	}
	return FLOW_PREPARED;
}

/* Does a packet of a pod whose address means nothing outside go there? s->dst: what is known of `dst`. */
static __noinline bool masquerades(struct scratch *s, const struct addr *dst)
{
	struct addr node;

	if (s->hook != FROM_WORKLOAD || !(s->src.flags & ADDR_MASQUERADE))
		return false;
	addr_of_node(&node, s->p.v4);
	if (addr_is_zero(&node) || s->p.fragment || !pkt_has_ports(&s->p))
		return false; /* nothing to tell its flows apart by */
	return (s->dst.kind == 0 || s->dst.kind == ADDR_NODE) && !range_has(RANGE_INSIDE, dst);
}

/* It leaves as this node, from a port of those kept for it. */
static __always_inline void masquerade(struct scratch *s)
{
	addr_of_node(&s->v.out.src, s->p.v4);
	port_change(s);
	count_slot(DROP_MAX + COUNT_MASQUERADED);
}

static __noinline int prepare_masquerade(struct __sk_buff *skb, struct scratch *s)
{
	struct ct_value *v = &s->v;
	struct ct_leg *leg = &v->leg[s->dir & 1];

	v->out = s->p.t;
	masquerade(s);
	leg->flags = LEG_NAT;
	way_by_info(skb, s, v, leg, &v->out.dst);
	return FLOW_PREPARED;
}

/* Made before us by another proxy, and known to the kernel, which goes on with it. */
static __noinline int prepare_foreign(struct scratch *s)
{
	struct ct_value *v = &s->v;

	for (int i = 0; i < 2; i++) {
		v->leg[i].flags = LEG_READY | LEG_STACK;
		v->leg[i].mtu = MTU_UNLIMITED;
	}
	v->state = CT_FOREIGN | CT_TCP_OPEN;
	return FLOW_PREPARED;
}

/* Does a packet in the middle of a TCP connection that we do not know belong to the proxy before us? */
static __noinline bool taking_over(struct scratch *s)
{
	struct node_state *state;
	__u32 zero = 0;

	if (s->p.proto != IPPROTO_TCP || s->p.tunnelled || pkt_is_syn(&s->p))
		return false;
	state = bpf_map_lookup_elem(&np_state, &zero);
	return state && s->now < state->takeover_until;
}

/* Is the backend, known by s->dst, with nobody who would send its answer back to us? What comes from outside then leaves as this node. */
static __always_inline bool fronts(struct scratch *s)
{
	struct addr node;

	addr_of_node(&node, s->p.v4);
	return s->hook == FROM_HOST && s->dst.kind != ADDR_LOCAL_POD && s->dst.kind != ADDR_SELF && !addr_is_zero(&node);
}

/* Where the backend is: in the tunnel when it is on another node and the client is outside, so that the answer comes back through
 * this node, or goes out as its; by route otherwise. */
static __always_inline enum drop service_way(struct __sk_buff *skb, struct scratch *s, const struct backend *be)
{
	struct ct_value *v = &s->v;
	struct ct_leg *leg = &v->leg[s->dir & 1];

	leg->flags = LEG_NAT;
	if (s->hook == FROM_HOST && !addr_is_zero(&be->node)) {
		if (way_by_tunnel(skb, s, v, leg, &be->node))
			return DROP_NO_ROUTE;
		if (cfg.dsr && !range_has(RANGE_TUNNEL_BACK, &s->p.t.src))
			leg->flags |= LEG_DSR | (s->p.proto == IPPROTO_TCP ? LEG_HALF : 0);
		count_slot(DROP_MAX + COUNT_TUNNEL_SENT);
		return DROP_NONE;
	}
	addr_look(&s->dst, &v->out.dst);
	s->reroute = s->hook == TO_HOST;
	/* to oneself: the answer must pass here to be translated back */
	if (addr_eq(&v->out.dst, &s->p.t.src) || (s->reroute && s->dst.kind == ADDR_SELF))
		v->out.src = s->p.t.dst;
	if (masquerades(s, &v->out.dst) || fronts(s))
		masquerade(s);
	way_by_info(skb, s, v, leg, &v->out.dst);
	return DROP_NONE;
}

static __noinline int prepare_service(struct __sk_buff *skb, struct scratch *s, const struct frontend *fe)
{
	const struct choice *from = choice_of(s, fe);
	struct ct_value *v = &s->v;
	struct backend *be;
	__u32 slot = 0;
	enum drop why;

	if (s->p.proto == IPPROTO_TCP && !pkt_is_syn(&s->p) && !(fe->flags & FRONTEND_MAGLEV))
		return DROPPED(DROP_NO_FLOW);
	if (fe->flags & FRONTEND_RANGES && !range_has(fe->inside.list, &s->p.t.src))
		return DROPPED(DROP_SOURCE_RANGE);
	be = backend_pick(s, fe, from, &slot);
	if (!be)
		return DROPPED(fe->flags & (s->hook == FROM_HOST ? FRONTEND_OUTSIDE_LOCAL : FRONTEND_INSIDE_LOCAL) ? DROP_NO_LOCAL_BACKEND
														     : DROP_NO_BACKEND);
	v->out.src = s->p.t.src;
	v->out.sport = s->p.t.sport;
	v->out.dst = be->addr;
	v->out.dport = be->port;
	v->slot = slot;
	why = service_way(skb, s, be);
	if (why)
		return DROPPED(why);
	count_slot(DROP_MAX + COUNT_FLOW_SERVICE);
	return FLOW_PREPARED;
}

/* Is there a way back to who sends from the network, as the settings ask? With the tunnel that is the other node. */
static __noinline bool source_reachable(struct __sk_buff *skb, struct scratch *s)
{
	struct bpf_fib_lookup *fib = &s->fib;
	struct addr self;
	long ret;

	if (s->p.tunnelled) {
		addr_of_node(&self, s->p.v4);
		fib_fill(fib, skb->ifindex, &self, &s->tunnel_from);
	} else {
		fib_fill(fib, skb->ifindex, &s->p.t.dst, &s->p.t.src);
	}
	ret = bpf_fib_lookup(skb, fib, sizeof(*fib), 0);
	if (ret != BPF_FIB_LKUP_RET_NO_NEIGH && !fib_found(ret))
		return false;
	return cfg.source_check != SOURCE_STRICT || fib->ifindex == skb->ifindex;
}

/* To a service, and no part of what it is there for: between node and router it would circle. */
static __always_inline bool is_stray(const struct addr_info *info)
{
	return cfg.stray_service && info->kind == ADDR_SERVICE;
}

/* A packet that means no service. */
static __always_inline int prepare_other(struct __sk_buff *skb, struct scratch *s)
{
	if (is_stray(&s->dst))
		return DROPPED(DROP_STRAY_SERVICE);
	if (s->hook == FROM_WORKLOAD && s->p.proto == IPPROTO_UDP && s->p.t.dport == cfg.tunnel_port &&
	    (s->dst.kind == ADDR_NODE || s->dst.kind == ADDR_SELF))
		return DROPPED(DROP_TUNNEL_SOURCE); /* a pod that plays a node */
	if (s->hook == TO_HOST) {
		s->reroute = cfg.overlay && s->dst.kind == 0 && route_to(&s->p.t.dst);
		if (!s->reroute && !host_asks(skb->ifindex))
			return NP_PASS; /* the host's own traffic */
	}
	if (s->hook == FROM_HOST && !s->p.tunnelled && s->dst.kind != ADDR_LOCAL_POD && !s->key.lane && !host_asks(skb->ifindex))
		return NP_PASS; /* other traffic is left alone, unless a flow of ours would take its answers, or there are rules for it */
	if (masquerades(s, &s->p.t.dst))
		return prepare_masquerade(skb, s);
	return prepare_plain(skb, s);
}

/* Makes the flow in s->v. Returns FLOW_PREPARED, a TC action or DROPPED(). */
static __noinline int flow_prepare(struct __sk_buff *skb, struct scratch *s)
{
	struct frontend *fe = 0;

	__builtin_memset(&s->v, 0, sizeof(s->v));
	__builtin_memset(&s->dst, 0, sizeof(s->dst));
	if (s->hook == TO_WORKLOAD || s->p.tunnelled || s->p.fragment) {
		addr_look(&s->dst, &s->p.t.dst);
	} else {
		fe = frontend_find(&s->p.t.dst, s->p.t.dport, s->p.proto, &s->dst, s->hook == FROM_HOST);
	}
	if ((fe || s->dst.kind == ADDR_LOCAL_POD || s->hook == FROM_WORKLOAD) && taking_over(s))
		return prepare_foreign(s);
	if (cfg.source_check && s->hook == FROM_HOST && (s->p.tunnelled || fe || s->dst.kind == ADDR_LOCAL_POD) && !source_reachable(skb, s))
		return DROPPED(DROP_REVERSE_PATH);
	return fe ? prepare_service(skb, s, fe) : prepare_other(skb, s);
}

/* What is to be judged when the flow in s->v is new. */
static __noinline void judged_new(struct __sk_buff *skb, struct scratch *s)
{
	struct ct_leg *leg = &s->v.leg[s->dir & 1];
	struct judged *j = &s->judged;

	judged_here(skb, s);
	s->v.leg[0].hook = j->hook;
	s->v.leg[1].hook = j->hook;
	s->v.device = j->device;
	j->before = s->p.t;
	j->t = s->p.t;
	if (leg->flags & LEG_NAT) {
		j->t.dst = s->v.out.dst;
		j->t.dport = s->v.out.dport;
	}
	j->way_out = way_out_of(leg);
	if (s->hook != FROM_WORKLOAD)
		addr_look(&s->src, &j->t.src);
}

/* Makes the flow of the packet and enters it. Returns FLOW_MADE, FLOW_THERE, a TC action or DROPPED(). */
static __noinline int flow_new(struct __sk_buff *skb, struct scratch *s)
{
	int act = flow_prepare(skb, s);
	enum drop why;

	if (act != FLOW_PREPARED)
		return act;
	judged_new(skb, s);
	why = flow_judge(skb, s, &s->v);
	return why ? DROPPED(why) : flow_enter(skb, s);
}

#endif
