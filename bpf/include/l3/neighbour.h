/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* What links need for themselves, of which no rules ask: neighbour discovery, multicast listeners. Answers for the
 * pods' gateway: ARP and neighbour solicitation. Layer: slow paths. */
#ifndef NP_L3_NEIGHBOUR_H
#define NP_L3_NEIGHBOUR_H

#include "base/parse.h"
#include "l3/route.h"

struct arp_v4 {
	struct ethhdr eth;
	__be16 hardware, protocol;
	__u8 hardware_size, protocol_size;
	__be16 operation;
	__u8 sender_mac[ETH_ALEN];
	__be32 sender;
	__u8 target_mac[ETH_ALEN];
	__be32 target;
} __attribute__((packed));

struct nd_message {
	struct ethhdr eth;
	struct ipv6hdr ip;
	struct icmp icmp;
	__be32 target[4];
	__u8 option[2]; /* link-layer address, one unit of 8 bytes */
	__u8 mac[ETH_ALEN];
} __attribute__((packed));

_Static_assert(sizeof(struct arp_v4) <= sizeof(((struct answer *)0)->buf), "room for the ARP answer");
_Static_assert(sizeof(struct nd_message) <= sizeof(((struct answer *)0)->buf), "room for the advertisement");
_Static_assert(offsetof(struct nd_message, target) == offsetof(struct nd_message, icmp) + sizeof(struct icmp) &&
		       sizeof(struct nd_message) == offsetof(struct nd_message, target) + 16 + 8,
	       "its checksum is summed without a gap");

#define ARP_REQUEST bpf_htons(1)
#define ARP_REPLY bpf_htons(2)
#define ND_OPTION_TARGET 2
#define ND_SOLICITED_OVERRIDE bpf_htonl(0x60000000)

static __always_inline enum verdict answer_send(struct __sk_buff *skb, const void *bytes, __u32 size)
{
	if (bpf_skb_change_tail(skb, size, 0) || bpf_skb_store_bytes(skb, 0, bytes, size, BPF_F_RECOMPUTE_CSUM))
		return dropped(DROP_REWRITE);
	count_slot(DROP_MAX + COUNT_NEIGHBOUR_ANSWERED);
	mark_set_decided(skb);
	return bpf_redirect(skb->ifindex, 0);
}

/* A full table of the kernel evicts neighbours that it last heard of more than 5 s ago: a device must have few younger
 * ones. */
#define LINK_CHANGES_NS SECOND_NS

/* An address of the link is the pod's own if it is the one that its device has now: made-up ones would fill the
 * node's table of neighbours. */
static __always_inline bool is_links_own(struct scratch *s, __u32 ifindex, const struct addr *a)
{
	struct link_addr *known = bpf_map_lookup_elem(&np_links, &ifindex), now = {};

	if (known && addr_eq(&known->addr, a))
		return true;
	if (known && s->now - known->since < LINK_CHANGES_NS)
		return false;
	now.addr = *a;
	now.since = s->now;
	bpf_map_update_elem(&np_links, &ifindex, &now, BPF_ANY);
	return true;
}

static __always_inline bool is_gateway_v6(const struct addr *a)
{
	return a->w[0] == cfg.gateway_v6.w[0] && a->w[1] == cfg.gateway_v6.w[1] && a->w[2] == cfg.gateway_v6.w[2] &&
	       a->w[3] == cfg.gateway_v6.w[3];
}

/* May the pod behind this device say that the address is its own? The gateway's is this side's. */
static __noinline bool is_senders_own(struct __sk_buff *skb, struct scratch *s, const struct addr *a)
{
	__u32 ifindex = skb->ifindex;
	struct addr_info *info;

	if (addr_is_link_local(a))
		return !is_gateway_v6(a) && is_links_own(s, ifindex, a);
	info = bpf_map_lookup_elem(&np_addrs, a);
	return info && info->kind == ADDR_LOCAL_POD && info->ifindex == ifindex;
}

/* A pod announces its own address, or probes whether another host has it. Requests for the gateway are answered with
 * this side of the veth. Other ARP is the kernel's. Writes answer.buf. */
static __noinline enum verdict arp_from_pod(struct __sk_buff *skb, struct scratch *s)
{
	__u32 ifindex = skb->ifindex;
	struct arp_v4 *m = (void *)s->answer.buf;
	struct iface *dev;
	struct addr sender;
	__be32 gateway = cfg.gateway_v4.w[3];

	if (bpf_skb_load_bytes(skb, 0, m, sizeof(*m)))
		return dropped(DROP_SHORT);
	if (m->protocol != bpf_htons(ETH_P_IP) || m->hardware_size != ETH_ALEN || m->protocol_size != sizeof(m->sender))
		return VERDICT_PASS; /* of which the kernel takes nothing */
	addr_from_v4(&sender, m->sender);
	if (!(m->operation == ARP_REQUEST && !m->sender) && !is_senders_own(skb, s, &sender))
		return dropped(DROP_SPOOFED);
	dev = bpf_map_lookup_elem(&np_ifaces, &ifindex);
	if (!dev || m->operation != ARP_REQUEST || m->target != gateway)
		return VERDICT_PASS;
	m->operation = ARP_REPLY;
	__builtin_memcpy(m->target_mac, m->sender_mac, ETH_ALEN);
	m->target = m->sender;
	__builtin_memcpy(m->eth.h_dest, m->sender_mac, ETH_ALEN);
	__builtin_memcpy(m->eth.h_source, dev->mac, ETH_ALEN);
	__builtin_memcpy(m->sender_mac, dev->mac, ETH_ALEN);
	m->sender = gateway;
	return answer_send(skb, m, sizeof(*m));
}

/* Does the packet stay on the link, or come to the node itself? Pods of other plugins may share a bridge, which
 * only the kernel knows: a packet that it forwards elsewhere no longer has this hop limit. To the network these pods
 * are behind the node. */
static __noinline bool link_has(struct __sk_buff *skb, struct scratch *s)
{
	const struct addr *dst = &s->p.t.dst;
	struct addr_info *info;

	if (addr_is_multicast(dst, false))
		return (dst->w[0] & bpf_htonl(0x000f0000)) <= bpf_htonl(0x00020000); /* its scope */
	if (addr_is_link_local(dst))
		return true;
	if (addr_is_inner(dst, false))
		return false; /* the node's own alone */
	info = bpf_map_lookup_elem(&np_addrs, dst);
	if (info && info->kind)
		return info->kind == ADDR_SELF ||
		       (s->hook == FROM_WORKLOAD && info->kind == ADDR_LOCAL_POD && info->flags & ADDR_ROUTED);
	return !(cfg.overlay && route_to(dst)) && addr_is_own(skb, s, &s->p.t.src, dst);
}

enum link_message {
	LINK_NONE,
	LINK_DISCOVERY, /* of neighbours and routers: its hop limit tells that no router has sent it on */
	LINK_LISTENER,  /* of multicast: its hop limit tells that none will */
};

/* What the packet is to its link. The type alone does not make it so. Reads first_fragment. */
static __noinline enum link_message link_message(struct __sk_buff *skb, struct scratch *s)
{
	const struct pkt *p = &s->p;
	__u8 type;

	if (p->v4 || p->proto != IPPROTO_ICMPV6 || p->fragment || s->first_fragment || p->tunnelled ||
	    bpf_skb_load_bytes(skb, p->l4, &type, 1))
		return LINK_NONE;
	if (type >= ICMP6_ROUTER_SOLICITATION && type <= ICMP6_REDIRECT)
		return p->ttl == 255 && (!hook_is_from(s->hook) || link_has(skb, s)) ? LINK_DISCOVERY : LINK_NONE;
	if (type != ICMP6_LISTENER_REPORT2 && (type < ICMP6_LISTENER_QUERY || type > ICMP6_LISTENER_DONE))
		return LINK_NONE;
	return p->ttl == 1 && addr_is_multicast(&p->t.dst, false) &&
			       (addr_is_link_local(&p->t.src) || addr_is_zero(&p->t.src))
		       ? LINK_LISTENER
		       : LINK_NONE;
}

/* The node has the gateway's address: this side of the veth answers every solicitation.
 * Reads and writes answer.buf. */
static __noinline enum verdict nd_answer(struct __sk_buff *skb, struct scratch *s, struct iface *dev)
{
	struct nd_message *m = (void *)s->answer.buf;
	const __u32 body = sizeof(m->icmp) + sizeof(m->target) + 8;

	__builtin_memcpy(m->eth.h_dest, m->eth.h_source, ETH_ALEN);
	__builtin_memcpy(m->eth.h_source, dev->mac, ETH_ALEN);
	addr_to_v6(m->ip.daddr.in6_u.u6_addr32, &s->p.t.src);
	__builtin_memcpy(&m->ip.saddr, m->target, sizeof(m->target));
	m->ip.hop_limit = 255;
	m->ip.nexthdr = IPPROTO_ICMPV6;
	m->ip.payload_len = bpf_htons(body);
	__builtin_memset(&m->icmp, 0, sizeof(m->icmp));
	m->icmp.type = ICMP6_ADVERTISEMENT;
	m->icmp.word = ND_SOLICITED_OVERRIDE;
	m->option[0] = ND_OPTION_TARGET;
	m->option[1] = 1;
	__builtin_memcpy(m->mac, dev->mac, ETH_ALEN);
	m->icmp.checksum = ~sum_fold16((__u64)(__u32)bpf_csum_diff(0, 0, (void *)&m->ip.saddr, 32 + body, 0) +
				       bpf_htons(body) + bpf_htons(IPPROTO_ICMPV6));
	return answer_send(skb, m, sizeof(*m));
}

/* Of discovery a pod may send solicitations, and advertisements of its own address. Writes answer.buf. */
static __noinline enum verdict nd_from_pod(struct __sk_buff *skb, struct scratch *s)
{
	struct nd_message *m = (void *)s->answer.buf;
	const struct addr *src = &s->p.t.src;
	__u32 ifindex = skb->ifindex;
	struct addr target;
	struct iface *dev;

	/* up to the target, which not all have: the option is the sender's and may be missing */
	if (bpf_skb_load_bytes(skb, 0, m, offsetof(struct nd_message, icmp)) ||
	    bpf_skb_load_bytes(skb, s->p.l4, &m->icmp, sizeof(m->icmp)))
		return dropped(DROP_SHORT);
	if (m->icmp.type == ICMP6_ROUTER_ADVERTISEMENT || m->icmp.type == ICMP6_REDIRECT)
		return dropped(DROP_SPOOFED); /* it is no router */
	if (!(addr_is_zero(src) && m->icmp.type != ICMP6_ADVERTISEMENT) && !is_senders_own(skb, s, src))
		return dropped(DROP_SPOOFED);
	if (m->icmp.type == ICMP6_ROUTER_SOLICITATION)
		return VERDICT_PASS;
	if (bpf_skb_load_bytes(skb, s->p.l4 + sizeof(m->icmp), m->target, sizeof(m->target)))
		return dropped(DROP_SHORT);
	addr_from_v6(&target, m->target);
	if (m->icmp.type == ICMP6_ADVERTISEMENT)
		return is_senders_own(skb, s, &target) ? VERDICT_PASS : dropped(DROP_SPOOFED);
	dev = bpf_map_lookup_elem(&np_ifaces, &ifindex);
	if (!dev || addr_is_zero(src) || !is_gateway_v6(&target))
		return VERDICT_PASS;
	return nd_answer(skb, s, dev);
}

#endif
