/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* Which way a flow's packets go: decided on the first one, kept in the flow's leg. Layer: slow paths. */
#ifndef NP_L3_ROUTE_H
#define NP_L3_ROUTE_H

#include "base/scratch.h"

#define MTU_UNLIMITED 0xffff

static __always_inline void fib_fill(struct bpf_fib_lookup *fib, __u32 ifindex, const struct addr *src,
				     const struct addr *dst)
{
	__builtin_memset(fib, 0, sizeof(*fib));
	fib->ifindex = ifindex;
	fib->tot_len = 1; /* asks for the route's MTU, which comes in its place since 5.12 */
	if (addr_is_v4(dst)) {
		fib->family = AF_INET;
		fib->ipv4_dst = dst->w[3];
		fib->ipv4_src = src->w[3];
	} else {
		fib->family = AF_INET6;
		addr_to_v6(fib->ipv6_dst, dst);
		addr_to_v6(fib->ipv6_src, src);
	}
}

/* Is `dst`, to which `src` sends by this device, the node's own, though no row says so? Link-local, multicast and
 * broadcast addresses are, and those that the node routes to itself. The kernel forwards no packets to them.
 * Writes fib. */
static __noinline bool addr_is_own_by(struct __sk_buff *skb, struct scratch *s, __u32 device, const struct addr *src,
				      const struct addr *dst)
{
	long ret;

	if (addr_is_link_local(dst) || addr_is_multicast(dst, addr_is_v4(dst)))
		return true;
	fib_fill(&s->fib, device, src, dst);
	ret = bpf_fib_lookup(skb, &s->fib, sizeof(s->fib), 0);
	return ret == BPF_FIB_LKUP_RET_NOT_FWDED || ret == BPF_FIB_LKUP_RET_FWD_DISABLED;
}

/* The same by the device at hand. */
static __always_inline bool addr_is_own(struct __sk_buff *skb, struct scratch *s, const struct addr *src,
					const struct addr *dst)
{
	return addr_is_own_by(skb, s, skb->ifindex, src, dst);
}

/* The kernel's route to `dst`: a host device of ours, or its own stack for everything we do not handle ourselves.
 * Writes fib. */
static __noinline enum drop way_by_route(struct __sk_buff *skb, struct scratch *s, struct ct_leg *leg,
					 const struct addr *src, const struct addr *dst)
{
	struct bpf_fib_lookup *fib = &s->fib;
	struct iface *dev;
	__u32 ifindex, mtu;
	long ret;

	leg->mtu = MTU_UNLIMITED;
	leg->flags |= LEG_READY | LEG_STACK;
	fib_fill(fib, skb->ifindex, src, dst);
	ret = bpf_fib_lookup(skb, fib, sizeof(*fib), 0);
	if (ret != BPF_FIB_LKUP_RET_NO_NEIGH && !fib_found(ret))
		return DROP_NO_ROUTE;
	ifindex = fib->ifindex;
	dev = bpf_map_lookup_elem(&np_ifaces, &ifindex);
	if (!dev || dev->kind != IFACE_HOST)
		return DROP_NO_ROUTE;
	mtu = fib->tot_len > 1 && fib->tot_len < dev->mtu ? fib->tot_len : dev->mtu;
	leg->ifindex = ifindex;
	leg->mtu = mtu > MTU_UNLIMITED ? MTU_UNLIMITED : mtu;
	leg->flags = (leg->flags & ~LEG_STACK) | LEG_NEIGH;
	return DROP_NONE;
}

/* What is known of the path to the node, while it holds: paths change. */
static __always_inline void path_narrows(struct scratch *s, struct ct_leg *leg, const struct addr *via)
{
	struct path *path = bpf_map_lookup_elem(&np_paths, via);

	if (path && s->now < path->until && path->mtu < leg->mtu)
		leg->mtu = path->mtu;
}

/* The way into the tunnel to node `via`. Without a route to it there is none. Writes fib. */
static __noinline enum drop way_by_tunnel(struct __sk_buff *skb, struct scratch *s, struct ct_value *v,
					  struct ct_leg *leg, const struct addr *via)
{
	struct addr self;
	enum drop why;

	addr_of_node(&self, addr_is_v4(via));
	why = way_by_route(skb, s, leg, &self, via);
	if (why)
		return why;
	path_narrows(s, leg, via);
	leg->flags |= LEG_ENCAP;
	leg->mtu -= tunnel_overhead(addr_is_v4(via));
	v->via = *via;
	return DROP_NONE;
}

/* What we know of an address. */
static __always_inline void addr_look(struct addr_info *to, const struct addr *a)
{
	struct addr_info nothing = {}, *info = bpf_map_lookup_elem(&np_addrs, a);

	*to = info ? *info : nothing;
}

/* The node whose pods these are, where the network between the nodes does not know them. */
static __noinline struct route *route_to(const struct addr *dst)
{
	struct net_key k = {};

	k.prefix = 128;
	k.addr = *dst;
	return bpf_map_lookup_elem(&np_routes, &k);
}

/* Is the address in one of the set's prefixes? */
static __noinline bool range_has(__u64 set, const struct addr *a)
{
	struct range_key k = {};

	k.prefix = 64 + 128;
	k.set[0] = bpf_htonl((__u32)(set >> 32));
	k.set[1] = bpf_htonl((__u32)set);
	k.addr = *a;
	return bpf_map_lookup_elem(&np_ranges, &k) != 0;
}

enum own_prefix {
	PREFIX_OWN = 1,
	PREFIX_NODE_PORTS = 2,
};

/* Is the packet's source or destination, which has no row, in RANGE_OWN? Returns enum own_prefix. */
NP_GLOBAL __u32 own_prefix_find(__u32 of_source)
{
	struct scratch *s = scratch_take();
	const struct addr *a;

	if (!s)
		return 0;
	a = of_source ? &s->p.t.src : &s->p.t.dst;
	if (!range_has(RANGE_OWN, a))
		return 0;
	return range_has(RANGE_NODE_PORTS, a) ? PREFIX_OWN | PREFIX_NODE_PORTS : PREFIX_OWN;
}

/* Few nodes have such prefixes at all. */
static __always_inline bool has_own_prefixes(void)
{
	struct node_state *state;
	__u32 zero = 0;

	state = bpf_map_lookup_elem(&np_state, &zero);
	return state && state->own_prefixes;
}

static __always_inline __u32 own_prefix(bool of_source)
{
	return has_own_prefixes() ? own_prefix_find(of_source) : 0;
}

/* Is any address, which has no row, in RANGE_OWN? */
static __always_inline bool is_in_own_prefix(const struct addr *a)
{
	return has_own_prefixes() && range_has(RANGE_OWN, a);
}

/* Is `dst`, of which s->dst is known, reached only through the tunnel? */
static __always_inline bool in_overlay(const struct scratch *s, const struct addr *dst)
{
	return cfg.overlay && s->dst.kind == 0 && route_to(dst);
}

/* The way to `dst`, of which s->dst is known, if that is by the tunnel. Writes fib. */
static __always_inline bool way_by_overlay(struct __sk_buff *skb, struct scratch *s, struct ct_value *v,
					   struct ct_leg *leg, const struct addr *dst)
{
	struct route *route = cfg.overlay && s->dst.kind == 0 ? route_to(dst) : 0;

	if (!route || way_by_tunnel(skb, s, v, leg, &route->node))
		return false;
	leg->flags |= LEG_OVERLAY;
	return true;
}

/* Does another plugin have this pod, which is to see what passes between it and the network? */
static __always_inline bool addr_is_routed(const struct addr *a)
{
	struct addr_info *info = bpf_map_lookup_elem(&np_addrs, a);

	return info && info->kind == ADDR_LOCAL_POD && info->flags & ADDR_ROUTED;
}

/* Is the packet the kernel's, though we could send it on? Netfilter has to see both directions of a flow or none.
 * It has seen what came to a pod by no other hook of ours, as what portmap translates; and where another plugin has
 * the pod, its rules are for all that passes between the pod and the network, but for what leaves as a service's:
 * the kernel takes nothing from its own addresses. Reads dst. */
static __noinline bool way_is_kernels(struct scratch *s, const struct ct_value *v, const struct ct_leg *leg)
{
	const bool answer = leg->flags & LEG_ANSWER, nat = leg->flags & LEG_NAT;

	if (s->hook == FROM_HOST || s->hook == TO_WORKLOAD)
		return s->dst.kind == ADDR_LOCAL_POD && s->dst.flags & ADDR_ROUTED && !s->p.tunnelled &&
		       (!nat || (answer && addr_eq(&v->out.dst, &s->p.t.dst)));
	if (s->hook != FROM_WORKLOAD)
		return false;
	if (answer && v->leg[0].hook == TO_WORKLOAD)
		return true;
	if (s->dst.kind == ADDR_LOCAL_POD || (nat && (answer || !addr_eq(&v->out.src, &s->p.t.src))))
		return false;
	return addr_is_routed(&s->p.t.src);
}

/* The way to `dst` by what we know of the address (s->dst), else by the kernel's route.
 * Reads dst, reroute; writes fib. */
static __noinline void way_by_info(struct __sk_buff *skb, struct scratch *s, struct ct_value *v, struct ct_leg *leg,
				   const struct addr *dst)
{
	const struct addr_info *info = &s->dst;
	/* else the kernel has routed it already, to where it still goes */
	bool ours = hook_is_from(s->hook) || s->reroute;

	if (way_is_kernels(s, v, leg)) {
		leg->ifindex = info->ifindex;
		/* by the device that this finds it will leave, and has rules to pass */
		if (cfg.host_policy && s->hook == FROM_WORKLOAD)
			way_by_route(skb, s, leg, &s->p.t.src, dst);
		leg->mtu = MTU_UNLIMITED;
		leg->flags &= ~LEG_NEIGH;
		leg->flags |= LEG_READY | LEG_STACK |
			      (leg->flags & LEG_NAT && s->hook != FROM_WORKLOAD ? LEG_LATER : 0);
		return;
	}
	if (info->kind == ADDR_LOCAL_POD && info->ifindex) {
		leg->ifindex = info->ifindex;
		leg->mtu = MTU_UNLIMITED; /* the kernel checks a veth's own */
		leg->flags |= LEG_READY | LEG_POD;
		/* behind a bridge, whose ports have no neighbours */
		if (s->hook == TO_HOST && info->flags & ADDR_ROUTED)
			leg->flags |= LEG_SELF;
		return;
	}
	if (info->kind == ADDR_SELF || !ours) {
		leg->mtu = MTU_UNLIMITED;
		leg->flags |= LEG_READY | LEG_STACK | (s->hook == TO_HOST && ours ? LEG_SELF : 0);
		return;
	}
	if (way_by_overlay(skb, s, v, leg, dst))
		return;
	way_by_route(skb, s, leg, &s->p.t.src, dst); /* no route: the kernel says so to the sender */
}

#endif
