/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* Is a packet's source true? Of what comes from the network, and of what leaves without having been seen. Layer: slow
 * paths. */
#ifndef NP_L3_SOURCE_H
#define NP_L3_SOURCE_H

#include "conntrack/insert.h"
#include "lb/service.h"
#include "l3/route.h"

/* ---- what comes from the network ------------------------------------------------------------------ */

/* Is there a route back to a sender in the network, as the settings ask? With the tunnel that is the other node.
 * Writes fib. */
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

/* Is the source none that a host beyond the link can have? Packets that a router forwards have no such source. */
static __always_inline bool source_is_martian(const struct pkt *p)
{
	const struct addr *a = &p->t.src;

	if (addr_is_inner(a, p->v4) || addr_is_multicast(a, p->v4))
		return true;
	return p->v4 ? (a->w[3] & bpf_htonl(0xffff0000)) == bpf_htonl(0xa9fe0000) : addr_is_link_local(a);
}

/* Does a packet from the network have a source address that only this node sends from: its own, that of a pod behind
 * a veth, or a service's, which packets have only where programs have put it? `info`: what the row of its source says,
 * if there is one. */
static __always_inline bool source_is_here(struct scratch *s, const struct addr_info *info)
{
	if (info && info->kind)
		return info->kind != ADDR_NODE;
	if (info && info->flags & ADDR_EXTERNAL && frontend_at(&s->p.t.src, s->p.t.sport, s->p.proto))
		return true;
	return own_prefix(true);
}

/* Is the source a pod of another node that sends in the tunnel, and did the packet come outside it? */
static __always_inline bool source_is_tunnels(struct scratch *s, const struct addr_info *info)
{
	struct route *route;

	if (!cfg.overlay || (info && info->kind))
		return false;
	route = route_to(&s->p.t.src);
	return route && !(s->p.tunnelled && addr_eq(&route->node, &s->tunnel_from));
}

/* Either of these? By another node's port this node and its pods come back in the tunnel. */
static __noinline bool source_is_elsewhere(struct scratch *s)
{
	struct addr_info *info = bpf_map_lookup_elem(&np_addrs, &s->p.t.src);

	if (!s->p.tunnelled && source_is_here(s, info))
		return true;
	return source_is_tunnels(s, info);
}

/* Checks the source of a packet that programs forward and the kernel does not see. Only the last check depends on the
 * settings. Writes fib. */
static __noinline enum drop source_refused(struct __sk_buff *skb, struct scratch *s)
{
	if (source_is_martian(&s->p))
		return DROP_MARTIAN;
	if (source_is_elsewhere(s))
		return DROP_SPOOFED;
	return cfg.source_check && !source_reachable(skb, s) ? DROP_REVERSE_PATH : DROP_NONE;
}

/* Checks the source of a packet that the kernel takes, or that is of no flow. A pod must not get a forged one, nor
 * another node in our tunnel, nor may it stand beside a flow of ours. The node itself hears pods of other nodes without
 * the tunnel. s->dst: what is known of its destination. Reads key.lane, dst. */
static __noinline enum drop source_refused_alone(struct scratch *s)
{
	struct addr_info *info;

	if (s->dst.kind == ADDR_LOCAL_POD && source_is_martian(&s->p))
		return DROP_MARTIAN;
	if (s->key.lane || s->dst.kind == ADDR_LOCAL_POD || in_overlay(s, &s->p.t.dst))
		return source_is_elsewhere(s) ? DROP_SPOOFED : DROP_NONE;
	info = bpf_map_lookup_elem(&np_addrs, &s->p.t.src);
	return !s->p.tunnelled && source_is_here(s, info) ? DROP_SPOOFED : DROP_NONE;
}

/* The same for a packet that the kernel takes. `asked`: there are rules for it. Reads key.lane, dst. */
static __noinline enum drop source_refused_by_host(struct scratch *s, bool asked)
{
	if (asked && s->dst.kind != ADDR_SELF && !addr_is_link_local(&s->p.t.dst) && source_is_martian(&s->p))
		return DROP_MARTIAN;
	return source_refused_alone(s);
}

/* ---- what leaves ------------------------------------------------------------------------------------ */

/* Would another node take the packet for one of our tunnel, though no program has put it there? A forwarded packet may
 * leave with this node's address, and a socket may have been connected before its peer was a node. Tunnels of the
 * node's kernel do neither, though they keep the mark of what they carry. A program has let a pod's answer through: it
 * leaves with the pod's address, unless the kernel has given it the node's. */
static __noinline bool plays_node_leaving(struct __sk_buff *skb, const struct pkt *p)
{
	struct addr_info *info;
	struct bpf_sock *socket;

	if (p->proto != IPPROTO_UDP || p->t.dport != cfg.tunnel_port)
		return false;
	if (!skb->ingress_ifindex) {
		socket = skb->sk;
		if (!socket || socket->dst_port != p->t.dport)
			return false;
	} else if (mark_is_known(skb)) {
		info = bpf_map_lookup_elem(&np_addrs, &p->t.src);
		if (!info || info->kind != ADDR_SELF)
			return false;
	}
	return is_tunnel_end(&p->t.dst, p->t.dport, p->proto);
}

/* Is the source the address of a pod or a service that did not send the packet? Such packets come from devices without
 * programs, and from processes of the node, which may bind any IPv6 address. In a connection that another proxy made
 * the kernel gives answers their service's address back. Reads key. */
static __noinline enum drop source_refused_leaving(struct __sk_buff *skb, struct scratch *s)
{
	const bool own = !skb->ingress_ifindex;
	struct addr_info *info;
	struct ct_value *v;

	if (s->hook == TO_HOST && plays_node_leaving(skb, &s->p))
		return DROP_TUNNEL_SOURCE;
	if (mark_is_known(skb))
		return DROP_NONE;
	if (own && s->p.v4 && s->hook == TO_HOST)
		return DROP_NONE;
	if (!own && s->hook == TO_WORKLOAD && source_is_martian(&s->p))
		return DROP_MARTIAN;
	info = bpf_map_lookup_elem(&np_addrs, &s->p.t.src);
	if (source_is_tunnels(s, info))
		return DROP_SPOOFED;
	if (!is_pretended(skb, info) || taking_over(s))
		return DROP_NONE;
	v = bpf_map_lookup_elem(&np_ct, &s->key);
	return v && v->state & CT_FOREIGN ? DROP_NONE : DROP_SPOOFED;
}

#endif
