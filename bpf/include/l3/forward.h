/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* The last step: a decided packet, translated, on its way. Layer: tc programs. */
#ifndef NP_L3_FORWARD_H
#define NP_L3_FORWARD_H

#include "base/verdict.h"
#include "l3/rewrite.h"
#include "l3/encap.h"

/* The helper also compares this packet, unsegmented, with the device's MTU; that is decided elsewhere, and the
 * route is there. */
static __always_inline bool fib_found(long ret)
{
	return ret == BPF_FIB_LKUP_RET_SUCCESS || ret == BPF_FIB_LKUP_RET_FRAG_NEEDED;
}

/* Before 5.10: the routing table also tells the neighbour's MAC; while it is not known the kernel takes the packet
 * and asks. */
static __always_inline enum verdict send_by_fib(struct __sk_buff *skb, const struct addr *src, const struct addr *dst,
						bool v4)
{
	struct bpf_fib_lookup fib = {};
	struct ethhdr eth;

	fib.family = v4 ? AF_INET : AF_INET6;
	fib.ifindex = skb->ifindex;
	if (v4) {
		fib.ipv4_src = src->w[3];
		fib.ipv4_dst = dst->w[3];
	} else {
		/* of the link that it came by, which is not that of the route: some kernels find none then */
		if (!addr_is_link_local(src))
			addr_to_v6(fib.ipv6_src, src);
		addr_to_v6(fib.ipv6_dst, dst);
	}
	if (!fib_found(bpf_fib_lookup(skb, &fib, sizeof(fib), 0)))
		return VERDICT_PASS;
	__builtin_memcpy(eth.h_dest, fib.dmac, ETH_ALEN);
	__builtin_memcpy(eth.h_source, fib.smac, ETH_ALEN);
	if (bpf_skb_store_bytes(skb, 0, &eth, 2 * ETH_ALEN, 0))
		return VERDICT_PASS;
	return bpf_redirect(fib.ifindex, 0);
}

static __always_inline enum verdict send_out(struct __sk_buff *skb, __u32 ifindex, const struct ct_tuple *t, bool v4)
{
	if (cfg.redirect_neigh)
		return bpf_redirect_neigh(ifindex, 0, 0, 0);
	return send_by_fib(skb, &t->src, &t->dst, v4);
}

/* A packet of the tunnel, as it is. */
static __always_inline enum verdict send_tunnelled(struct __sk_buff *skb, const struct addr *via, __u32 ifindex,
						   bool v4)
{
	struct addr self;

	mark_set_decided(skb);
	if (cfg.redirect_neigh)
		return bpf_redirect_neigh(ifindex, 0, 0, 0);
	addr_of_node(&self, v4);
	return send_by_fib(skb, &self, via, v4);
}

/* In the tunnel by the kernel's device. That gives the tunnel's header a checksum, and each segment its own where it
 * cuts the packet: no program can ask for that in a header of its own. The device sends what has the kernel's tunnel
 * key; it takes ECN over (RFC 3168, full functionality). */
static __always_inline enum verdict send_by_device(struct __sk_buff *skb, const struct pkt *p, const struct addr *via,
						   __u32 device, bool with_origin)
{
	__u64 flags = BPF_F_DONT_FRAGMENT | (p->v4 ? 0 : BPF_F_TUNINFO_IPV6);
	struct bpf_tunnel_key key = {};
	struct ethhdr *eth;
	struct addr self;

	addr_of_node(&self, p->v4);
	key.tunnel_id = cfg.tunnel_vni;
	key.tunnel_tos = tunnel_class(skb, p->v4);
	key.tunnel_ttl = OWN_TTL;
	if (p->v4) {
		key.remote_ipv4 = bpf_ntohl(via->w[3]);
		key.local_ipv4 = bpf_ntohl(self.w[3]);
	} else {
		addr_to_v6(key.remote_ipv6, via);
		addr_to_v6(key.local_ipv6, &self);
	}
	if (bpf_skb_set_tunnel_key(skb, &key, sizeof(key), flags) ||
	    (with_origin && bpf_skb_adjust_room(skb, sizeof(struct origin), BPF_ADJ_ROOM_MAC, 0)))
		return dropped(DROP_ENCAP);
	eth = (void *)(long)skb->data;
	if ((void *)(eth + 1) + (with_origin ? sizeof(struct origin) : 0) > (void *)(long)skb->data_end)
		return dropped(DROP_ENCAP);
	inner_addresses(eth, via);
	if (with_origin)
		origin_fill(eth, p);
	mark_set_decided(skb);
	return bpf_redirect(device, 0);
}

static __always_inline enum verdict send_in_tunnel(struct __sk_buff *skb, const struct pkt *p, const struct addr *to,
						   __u32 ifindex, bool with_origin)
{
	const __u32 device = tunnel_device();
	struct addr via = *to;
	enum drop why;

	if (device)
		return send_by_device(skb, p, &via, device, with_origin);
	why = encap(skb, p, &via, with_origin);
	return why ? dropped(why) : send_tunnelled(skb, &via, ifindex, p->v4);
}

/* From the way out back in: the loopback device takes frames for no address only. */
static __always_inline enum verdict send_to_self(struct __sk_buff *skb)
{
	struct ethhdr *eth = (void *)(long)skb->data;

	if ((void *)(eth + 1) > (void *)(long)skb->data_end)
		return dropped(DROP_SHORT);
	__builtin_memset(eth, 0, 2 * ETH_ALEN);
	return bpf_redirect(NP_LOOPBACK, BPF_F_INGRESS);
}

/* Does what the leg says. `p->t` is the packet's tuple. `slow`: it is the slow
 * path's, which may have any packet in its hands. The tunnel counts as one hop, taken where it begins. */
static __always_inline enum verdict send(struct __sk_buff *skb, struct pkt *p, const struct ct_value *v,
					 const struct ct_leg *leg, const enum hook hook, const bool slow)
{
	const struct ct_tuple *out = leg->flags & LEG_NAT ? &v->out : &p->t;
	const __u32 ifindex = leg->ifindex, flags = leg->flags;
	const bool hop = hook_is_from(hook) && !(flags & LEG_STACK) && !p->tunnelled;
	const bool with_origin = slow && flags & LEG_DSR && !p->gso && p->len + sizeof(struct origin) <= leg->mtu;
	enum drop why = DROP_NONE;
	enum verdict verdict;

	if (hook == FROM_HOST && flags & LEG_LATER)
		return VERDICT_PASS;
	if (hop)
		p->ttl--;
	if (flags & LEG_NAT)
		why = rewrite(skb, p, out, slow);
	else if (hop)
		why = rewrite_ttl(skb, p);
	if (why)
		return dropped(why);
	if (flags & LEG_ENCAP && !(hook == FROM_WORKLOAD && flags & LEG_LATER))
		return send_in_tunnel(skb, p, &v->via, ifindex, with_origin);
	if (hook == TO_HOST && flags & LEG_SELF) {
		if (flags & LEG_POD) /* where the kernel has no way to it but this one it would circle */
			mark_set_decided(skb);
		return send_to_self(skb);
	}
	if (flags & LEG_STACK || hook == TO_WORKLOAD) {
		if (flags & LEG_NAT || p->tunnelled) /* the kernel may lead it to another hook of ours */
			mark_set_translated(skb);
		if (hook == FROM_WORKLOAD)
			mark_set_asked(skb);
		return VERDICT_PASS;
	}
	if (flags & LEG_POD && cfg.redirect_peer && hook_is_from(hook)) { /* the kernel allows it at ingress only */
		/* what is for another port of the sender's bridge: the kernel calls it the receiver's own from 6.16
		 * on */
		if (hook == FROM_WORKLOAD && skb->pkt_type != PACKET_HOST)
			bpf_skb_change_type(skb, PACKET_HOST);
		return bpf_redirect_peer(ifindex, 0);
	}
	mark_set_decided(skb);
	verdict = send_out(skb, ifindex, out, p->v4);
	/* its neighbour is not known yet: on this way out the kernel would not ask for it */
	return hook == TO_HOST && verdict == VERDICT_PASS ? send_to_self(skb) : verdict;
}

#endif
