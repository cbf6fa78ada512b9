/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* A flow's first packet: service, backend, way, verdict. Layer: slow paths. */
#ifndef NP_CONNTRACK_CREATE_H
#define NP_CONNTRACK_CREATE_H

#include "l3/route.h"
#include "lb/select.h"
#include "conntrack/insert.h"
#include "policy/apply.h"
#include "l3/source.h"

/* The flow of a packet that is not translated. The answer's way is decided when it comes.
 * Reads key.lane, dst; writes draft.v. */
static __noinline enum verdict prepare_plain(struct __sk_buff *skb, struct scratch *s)
{
	struct ct_value *v = &s->draft.v;
	struct ct_leg *leg = &v->leg[s->dir & 1], *back = &v->leg[opposite(s->dir)];
	bool to_itself;

	/* Each entry of a translated flow is found from the other by what packets leave as. With the origin's address
	 * neither would be, so answers go back through the tunnel. */
	if (s->key.lane || (s->p.tunnelled && addr_eq(&s->p.t.src, &s->p.t.dst)))
		s->p.origin = 0;
	if (s->p.tunnelled) {
		if (s->dst.kind != ADDR_LOCAL_POD && s->dst.kind != ADDR_SELF)
			return dropped(DROP_NO_ROUTE);
		if (!s->p.origin && way_by_tunnel(skb, s, v, back, &s->tunnel_from))
			return dropped(DROP_NO_ROUTE);
		v->via = s->tunnel_from;
		leg->flags = LEG_TUNNELLED;
	}
	way_by_info(skb, s, v, leg, &s->p.t.dst);
	count_slot(DROP_MAX + (s->p.tunnelled ? COUNT_TUNNEL_TAKEN : COUNT_FLOW_NEW));
	/* behind the calls: what was computed before them was wrong behind them on Linux 5.15 */
	to_itself = s->p.tunnelled && addr_eq(&s->p.t.src, &s->p.t.dst);
	if (s->key.lane || to_itself) {
		/* Another flow has these addresses and ports: to its destination this one comes from another port.
		 * Or a backend has reached itself by another node: it would take nothing from its own address, so
		 * it comes from that node. */
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

/* Does a packet of a pod whose address means nothing outside go there? s->dst: what is known of `dst`.
 * Reads src, dst; writes fib. */
static __noinline bool masquerades(struct __sk_buff *skb, struct scratch *s, const struct addr *dst)
{
	struct addr node;

	if (s->hook != FROM_WORKLOAD || !(s->src.flags & ADDR_MASQUERADE))
		return false;
	addr_of_node(&node, s->p.v4);
	if (addr_is_zero(&node) || s->p.fragment || !pkt_has_ports(&s->p))
		return false; /* nothing to tell its flows apart by */
	if ((s->dst.kind != 0 && s->dst.kind != ADDR_NODE) || range_has(RANGE_INSIDE, dst))
		return false;
	/* what is the node's by a route or a link hears the pod's own address */
	return s->dst.kind || !addr_is_own(skb, s, &s->p.t.src, dst);
}

/* It leaves as this node, from a port of those kept for it. Writes draft.v.out. */
static __always_inline void masquerade(struct scratch *s)
{
	addr_of_node(&s->draft.v.out.src, s->p.v4);
	port_change(s);
	count_slot(DROP_MAX + COUNT_MASQUERADED);
}

/* Reads dst; writes draft.v. */
static __noinline enum verdict prepare_masquerade(struct __sk_buff *skb, struct scratch *s)
{
	struct ct_value *v = &s->draft.v;
	struct ct_leg *leg = &v->leg[s->dir & 1];

	v->out = s->p.t;
	masquerade(s);
	leg->flags = LEG_NAT;
	way_by_info(skb, s, v, leg, &v->out.dst);
	return FLOW_PREPARED;
}

/* Another proxy's, and the kernel's therefore: made before us, or to a service that we serve to pods alone. A later
 * mode finds it here, and leaves it alone until it ends. `is_older`: a TCP connection that is open. Its other end may
 * be in the tunnel, of which the kernel knows nothing. Reads dst; writes draft.v, fib. */
static __noinline enum verdict prepare_foreign(struct __sk_buff *skb, struct scratch *s, bool is_older)
{
	struct ct_value *v = &s->draft.v;
	struct ct_leg *leg = &v->leg[s->dir & 1], *back = &v->leg[opposite(s->dir)];

	for (int i = 0; i < 2; i++) {
		v->leg[i].flags = LEG_READY | LEG_STACK;
		v->leg[i].mtu = MTU_UNLIMITED;
	}
	v->state = CT_FOREIGN | (is_older ? CT_TCP_OPEN : 0);
	if (s->p.tunnelled) {
		leg->flags |= LEG_TUNNELLED;
		if (way_by_tunnel(skb, s, v, back, &s->tunnel_from))
			return dropped(DROP_NO_ROUTE);
		back->flags |= LEG_STACK | LEG_LATER;
	} else if (is_older && way_by_overlay(skb, s, v, leg, &s->p.t.dst)) {
		leg->flags |= LEG_STACK | LEG_LATER;
	}
	return FLOW_PREPARED;
}

/* Is the backend, known by s->dst, where no node of ours would send its answer back here? A packet from outside then
 * leaves with this node's address. Reads dst. */
static __always_inline bool fronts(struct scratch *s)
{
	struct addr node;

	addr_of_node(&node, s->p.v4);
	return s->hook == FROM_HOST && s->dst.kind != ADDR_LOCAL_POD && s->dst.kind != ADDR_SELF &&
	       !addr_is_zero(&node);
}

/* Has another node translated the packet already, by its source port one of those kept for that, and is its backend a
 * place where it would be translated once more? Of this cluster's nodes and services all such places are known; another
 * cluster's node is known by the packet going back to it. The packet would circle until its hops are used up.
 * Reads dst, draft.v.out. */
static __noinline bool goes_round(const struct scratch *s)
{
	const struct ct_tuple *out = &s->draft.v.out;
	const __u32 port = bpf_ntohs(s->p.t.sport), first = cfg.nat_port_min;
	const struct addr_info *from;
	struct addr any;

	/* both ends are compared: on 4.18.0-240 a difference that may go below zero compared wrong */
	if (port < first || port >= first + cfg.nat_port_count)
		return false;
	from = bpf_map_lookup_elem(&np_addrs, &s->p.t.src);
	if (!from || from->kind != ADDR_NODE)
		return addr_eq(&s->p.t.src, &out->dst);
	addr_any(&any, s->p.v4);
	return (s->dst.kind == ADDR_NODE && frontend_at(&any, out->dport, s->p.proto)) ||
	       frontend_at(&out->dst, out->dport, s->p.proto);
}

/* Where the backend is: in the tunnel when it is on another node and the client is outside, so that the answer
 * comes back through this node, or goes out as its; by route otherwise.
 * Reads src, draft.v.out; writes draft.v, dst, reroute. */
static __always_inline enum drop service_way(struct __sk_buff *skb, struct scratch *s, const struct backend *be)
{
	struct ct_value *v = &s->draft.v;
	struct ct_leg *leg = &v->leg[s->dir & 1];
	bool fronted;

	leg->flags = LEG_NAT;
	if (s->hook == FROM_HOST && !addr_is_zero(&be->node)) {
		if (cfg.host_policy) /* else no rule asks for it: it is another node's pod */
			addr_look(&s->dst, &v->out.dst);
		if (way_by_tunnel(skb, s, v, leg, &be->node))
			return DROP_NO_ROUTE;
		if (cfg.dsr && !range_has(RANGE_TUNNEL_BACK, &s->p.t.src))
			leg->flags |= LEG_DSR;
		count_slot(DROP_MAX + COUNT_TUNNEL_SENT);
		return DROP_NONE;
	}
	addr_look(&s->dst, &v->out.dst);
	s->reroute = s->hook == TO_HOST;
	/* to oneself: the answer must pass here to be translated back */
	if (addr_eq(&v->out.dst, &s->p.t.src) || (s->reroute && s->dst.kind == ADDR_SELF))
		v->out.src = s->p.t.dst;
	fronted = fronts(s);
	if (fronted && goes_round(s))
		return DROP_SERVICE_LOOP;
	if (fronted || masquerades(skb, s, &v->out.dst))
		masquerade(s);
	way_by_info(skb, s, v, leg, &v->out.dst);
	return DROP_NONE;
}

/* Reads src; writes draft.v, dst, reroute. */
static __noinline enum verdict prepare_service(struct __sk_buff *skb, struct scratch *s, const struct frontend *fe)
{
	const struct choice *from = choice_of(s, fe);
	struct ct_value *v = &s->draft.v;
	struct backend *be;
	__u32 slot = 0;
	enum drop why;

	if (s->p.proto == IPPROTO_TCP && !pkt_is_syn(&s->p) && !(fe->flags & FRONTEND_MAGLEV))
		return dropped(DROP_NO_FLOW);
	if (fe->flags & FRONTEND_RANGES && !range_has(fe->inside.list, &s->p.t.src))
		return dropped(DROP_SOURCE_RANGE);
	be = backend_pick(s, fe, from, &slot);
	if (!be)
		return dropped(fe->flags & (s->hook == FROM_HOST ? FRONTEND_OUTSIDE_LOCAL : FRONTEND_INSIDE_LOCAL)
				       ? DROP_NO_LOCAL_BACKEND
				       : DROP_NO_BACKEND);
	v->out.src = s->p.t.src;
	v->out.sport = s->p.t.sport;
	v->out.dst = be->addr;
	v->out.dport = be->port;
	v->slot = slot;
	why = service_way(skb, s, be);
	if (why)
		return dropped(why);
	count_slot(DROP_MAX + COUNT_FLOW_SERVICE);
	return FLOW_PREPARED;
}

/* Would the kernel send the packet to where it came from, or to a router, which may send it back? Writes fib. */
static __noinline bool would_circle(struct __sk_buff *skb, struct scratch *s)
{
	struct bpf_fib_lookup *fib = &s->fib;
	struct addr hop;
	long ret;

	fib_fill(fib, skb->ifindex, &s->p.t.src, &s->p.t.dst);
	ret = bpf_fib_lookup(skb, fib, sizeof(*fib), 0);
	if (ret != BPF_FIB_LKUP_RET_NO_NEIGH && !fib_found(ret))
		return false;
	if (fib->family == AF_INET)
		addr_from_v4(&hop, fib->ipv4_dst);
	else
		addr_from_v6(&hop, fib->ipv6_dst);
	return fib->ifindex == skb->ifindex || !addr_eq(&hop, &s->p.t.dst);
}

/* Does the packet go to a service's address, on a port that no service has? It would circle between node and router.
 * Where the address may be a real host's, packets of pods and the node pass, and those from the network that would not
 * go back there. */
static __noinline bool is_stray(struct __sk_buff *skb, struct scratch *s, const struct addr_info *info)
{
	if (!cfg.stray_service)
		return false;
	if (info->kind || !(info->flags & ADDR_EXTERNAL))
		return info->kind == ADDR_SERVICE;
	return s->hook == FROM_HOST && !s->p.tunnelled && would_circle(skb, s);
}

/* Does the packet leave from an address and port where a service is reached? The kernel sends it, from a socket of the
 * node or masqueraded. Its answer would be taken for a request to the service, were there no flow. */
static __noinline bool leaves_from_service(const struct scratch *s)
{
	const struct ct_tuple *t = &s->p.t;
	struct addr_info *info;
	struct addr any;

	if (!pkt_has_ports(&s->p) || (s->p.proto == IPPROTO_TCP && !pkt_is_syn(&s->p)))
		return false; /* an answer that is no SYN: the node's sockets tell */
	addr_any(&any, s->p.v4);
	if (frontend_at(&any, t->sport, s->p.proto)) {
		info = bpf_map_lookup_elem(&np_addrs, &t->src);
		if (info ? info->kind == ADDR_SELF && info->flags & ADDR_NODE_PORTS
			 : own_prefix(true) & PREFIX_NODE_PORTS)
			return true;
	}
	return frontend_at(&t->src, t->sport, s->p.proto);
}

/* A packet to no service. Reads src, dst, key.lane; writes draft.v, reroute. */
static __always_inline enum verdict prepare_other(struct __sk_buff *skb, struct scratch *s)
{
	enum drop why;
	bool asked;

	if (is_stray(skb, s, &s->dst))
		return dropped(DROP_STRAY_SERVICE);
	if (s->hook == TO_WORKLOAD && s->dst.kind != ADDR_LOCAL_POD)
		return dropped(DROP_POLICY); /* whose rules are not known yet, or not any more */
	if (s->hook == TO_HOST) {
		s->reroute = in_overlay(s, &s->p.t.dst);
		if (!s->reroute && !s->key.lane && !host_asks(skb->ifindex) && !leaves_from_service(s))
			return VERDICT_PASS; /* the host's own traffic */
	}
	if (s->hook == FROM_HOST && !s->p.tunnelled && s->dst.kind != ADDR_LOCAL_POD) {
		asked = s->key.lane || host_asks(skb->ifindex);
		why = source_refused_by_host(s, asked);
		if (why)
			return dropped(why);
		if (!asked)
			return VERDICT_PASS; /* left alone: no rules, and no flow of ours that would take its answers */
	}
	if (masquerades(skb, s, &s->p.t.dst))
		return prepare_masquerade(skb, s);
	return prepare_plain(skb, s);
}

/* Of a packet that tells nothing of who began: the connection may be older than our programs. Reads key. */
static __noinline enum met met_of(const struct scratch *s)
{
	const struct older *older = bpf_map_lookup_elem(&np_older, &s->key);

	if (!older || s->now > older->until)
		return MET_EITHER;
	return older->opener == (s->dir & 1) ? MET_BEGUN : MET_TURNED;
}

/* Makes the flow in s->draft.v: FLOW_PREPARED, or the packet ends here.
 * Reads src, key; writes draft.v, dst, reroute, fib. */
NP_GLOBAL enum verdict flow_prepare(struct __sk_buff *skb)
{
	struct scratch *s = scratch_take();
	struct frontend *fe = 0;
	bool ours, near, forwarded, is_older, proxied = false;
	enum drop why;

	if (!s)
		return dropped(DROP_PROGRAM_MISSING);
	__builtin_memset(&s->draft.v, 0, sizeof(s->draft.v));
	__builtin_memset(&s->dst, 0, sizeof(s->dst));
	if (s->hook == TO_WORKLOAD || s->p.tunnelled || s->p.fragment) {
		addr_look(&s->dst, &s->p.t.dst);
	} else {
		fe = service_of_packet(s, &s->dst);
		if (fe && s->hook == FROM_HOST && s->p.proto == IPPROTO_TCP && !pkt_is_syn(&s->p) &&
		    tcp_is_connected(tcp_state(skb, &s->p.t)))
			fe = 0; /* of the node's own connection, which is older than the service */
		proxied = fe && fe->flags & FRONTEND_PODS && s->hook != FROM_WORKLOAD;
		if (proxied && s->hook == TO_HOST) {
			fe = 0; /* it should have been translated before it came here */
			addr_look(&s->dst, &s->p.t.dst);
		}
	}
	ours = fe || s->dst.kind == ADDR_LOCAL_POD;
	if (s->hook == FROM_WORKLOAD || (s->hook == FROM_HOST && (ours || s->p.tunnelled))) {
		if (addr_is_inner(&s->p.t.dst, s->p.v4))
			return dropped(DROP_MARTIAN); /* node ports there are for the node's own processes alone */
		why = s->hook == FROM_HOST ? source_refused(skb, s) : DROP_NONE;
		if (why)
			return dropped(why);
	}
	near = ours || s->hook == FROM_WORKLOAD;
	forwarded = s->hook == TO_HOST && skb->ingress_ifindex;
	is_older = (near || forwarded) && taking_over(s) && (near || in_overlay(s, &s->p.t.dst));
	/* who asks a service is known, here and at the node that has sent it on */
	if (!fe && !s->p.origin && pkt_goes_on(&s->p))
		s->draft.v.leg[s->dir & 1].met = met_of(s);
	if (is_older || (fe && proxied))
		return prepare_foreign(skb, s, is_older);
	return fe ? prepare_service(skb, s, fe) : prepare_other(skb, s);
}

/* The device by whose rules the packet passes: none between node and pods, and another than that of here where its
 * service's backend is. Reads reroute. */
static __always_inline __u32 device_of(struct __sk_buff *skb, const struct scratch *s, const struct ct_leg *leg)
{
	__u32 here = skb->ifindex;

	opaque(here); /* the context is to be read through its own pointer */
	if (s->hook != FROM_HOST && s->hook != TO_HOST)
		return 0;
	if (s->hook == FROM_HOST || !s->reroute || !(leg->flags & (LEG_POD | LEG_NEIGH)))
		return here;
	return way_out_of(leg);
}

/* Where packets leave, does the node itself send this one, of whose source s->src is known? What the kernel
 * forwards may have its address as well. What a pod has sent and gets back itself is as good. */
static __always_inline bool is_nodes_own(struct __sk_buff *skb, const struct scratch *s)
{
	if (skb->ingress_ifindex)
		return s->hook == TO_WORKLOAD && s->src.kind == ADDR_SELF && skb->ingress_ifindex == skb->ifindex;
	return s->hook == TO_HOST || s->src.kind == ADDR_SELF || addr_is_link_local(&s->p.t.src) ||
	       (!s->src.kind && own_prefix(true));
}

/* The flow in s->draft.v begins with this packet: fills in what is judged.
 * Reads dst; writes draft.v, src, dst.kind, judged. */
static __noinline void judged_new(struct __sk_buff *skb, struct scratch *s)
{
	struct ct_value *v = &s->draft.v;

	v->leg[0].hook = s->hook;
	v->leg[1].hook = s->hook;
	v->device = device_of(skb, s, &v->leg[s->dir & 1]);
	if (s->hook == FROM_HOST && !cfg.host_policy && !is_guarded(&s->dst) && !is_held(&s->dst))
		s->src.kind = 0; /* no rule asks for the source's identity */
	else if (s->hook != FROM_WORKLOAD)
		addr_look(&s->src, &s->p.t.src);
	if (!hook_is_from(s->hook) && is_nodes_own(skb, s))
		v->leg[s->dir & 1].flags |= LEG_BY_NODE;
	if (!is_judged(s) && !is_judged_turned(s) && !cfg.pod_to_host && !accounts())
		return;
	judged_flow(s, v);
	judged_ends(skb, s);
}

/* At a hook where packets leave: does the packet belong to a connection that a client opened to the node before this
 * device had rules, and so flows? Then the node has a socket for it, and another that listens on its port.
 * Reads src, reroute, key.lane. */
static __noinline bool serves_older(struct __sk_buff *skb, struct scratch *s)
{
	struct ct_tuple t;
	__u32 state;

	if (s->hook != TO_HOST || s->reroute || s->key.lane || s->p.proto != IPPROTO_TCP || s->p.fragment ||
	    pkt_is_syn(&s->p) || !is_nodes_own(skb, s) || !host_asks(skb->ifindex))
		return false;
	ct_reverse(&t, &s->p.t);
	state = tcp_state(skb, &t);
	if (!state || state == BPF_TCP_LISTEN)
		return false;
	t.sport = 0; /* as in is_older */
	return tcp_state(skb, &t) == BPF_TCP_LISTEN;
}

/* Fills in what is judged then: the connection, as it would have come in. Writes judged, src, dst. */
static __noinline void judged_served(struct __sk_buff *skb, struct scratch *s)
{
	struct judged *j = &s->judged;

	__builtin_memset(j, 0, sizeof(*j));
	j->hook = FROM_HOST;
	j->device = skb->ifindex;
	ct_reverse(&j->t, &s->p.t);
	j->before = j->t;
	addr_look(&s->src, &j->t.src);
	addr_look(&s->dst, &j->t.dst);
	judged_ends(skb, s);
}

#endif
