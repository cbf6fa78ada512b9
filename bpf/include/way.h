/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* Which way a flow's packets go: decided on the first one, kept in the flow's leg. Layer: slow paths. */
#ifndef NP_WAY_H
#define NP_WAY_H

#include "scratch.h"

/* The kernel's route to `dst`: a host device of ours, or its own stack for everything we do not handle ourselves. */
static __noinline enum drop way_by_route(struct __sk_buff *skb, struct scratch *s, struct ct_leg *leg, const struct addr *src,
					 const struct addr *dst)
{
	struct bpf_fib_lookup *fib = &s->fib;
	struct iface *dev;
	__u32 ifindex;
	long ret;

	leg->mtu = 0xffff;
	leg->flags |= LEG_READY | LEG_STACK;
	__builtin_memset(fib, 0, sizeof(*fib));
	fib->ifindex = skb->ifindex;
	if (addr_is_v4(dst)) {
		fib->family = AF_INET;
		fib->ipv4_dst = dst->w[3];
		fib->ipv4_src = src->w[3];
	} else {
		fib->family = AF_INET6;
		addr_to_v6(fib->ipv6_dst, dst);
		addr_to_v6(fib->ipv6_src, src);
	}
	ret = bpf_fib_lookup(skb, fib, sizeof(*fib), 0);
	if (ret != BPF_FIB_LKUP_RET_NO_NEIGH && !fib_found(ret))
		return DROP_NO_ROUTE;
	ifindex = fib->ifindex;
	dev = bpf_map_lookup_elem(&np_ifaces, &ifindex);
	if (!dev || dev->kind != IFACE_HOST)
		return DROP_NO_ROUTE;
	leg->ifindex = ifindex;
	leg->mtu = dev->mtu > 0xffff ? 0xffff : dev->mtu;
	leg->flags = (leg->flags & ~LEG_STACK) | LEG_NEIGH;
	return DROP_NONE;
}

/* The way into the tunnel to node `via`. Without a route to it there is none. */
static __noinline enum drop way_by_tunnel(struct __sk_buff *skb, struct scratch *s, struct ct_value *v, struct ct_leg *leg,
					       const struct addr *via)
{
	struct addr self;
	enum drop why;

	addr_of_node(&self, addr_is_v4(via));
	why = way_by_route(skb, s, leg, &self, via);
	if (why)
		return why;
	leg->flags |= LEG_ENCAP;
	leg->mtu -= tunnel_overhead(addr_is_v4(via));
	v->via = *via;
	return DROP_NONE;
}

/* The way to `dst` by what we know of the address, else by the kernel's route. */
static __noinline void way_by_info(struct __sk_buff *skb, struct scratch *s, struct ct_leg *leg, const struct addr_info *info,
				   const struct addr *dst)
{
	if (info->kind == ADDR_LOCAL_POD && info->ifindex) {
		leg->ifindex = info->ifindex;
		leg->mtu = 0xffff;	/* the kernel checks a veth's own */
		leg->flags |= LEG_READY | LEG_POD;
		return;
	}
	if (info->kind == ADDR_SELF || (!hook_is_from(s->hook) && !s->reroute)) {
		/* our own address, or a packet that the kernel has routed already, to where it still goes */
		leg->mtu = 0xffff;
		leg->flags |= LEG_READY | LEG_STACK;
		return;
	}
	way_by_route(skb, s, leg, &s->p.t.src, dst); /* no route: the kernel says so to the sender */
}

static __always_inline void way_to(struct __sk_buff *skb, struct scratch *s, struct ct_leg *leg, const struct addr *dst)
{
	struct addr_info nothing = {}, *info = bpf_map_lookup_elem(&np_addrs, dst);

	way_by_info(skb, s, leg, info ? info : &nothing, dst);
}

#endif
