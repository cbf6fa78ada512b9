/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* The tunnel between nodes (VTEP): VXLAN put on and taken off by the programs themselves, inner and outer of one
 * family. Layer: tc programs. */
#ifndef NP_L3_ENCAP_H
#define NP_L3_ENCAP_H

#include "conntrack/entry.h"
#include "base/mark.h"
#include "l3/header.h"

struct vxlan {
	__be32 flags; /* 0x08000000: the VNI is valid */
	__be32 vni;   /* in the upper 24 bits */
};

#define VXLAN_VNI_VALID bpf_htonl(0x08000000)
/* What agents send each other instead (agent/watch/tunnel/probe-packet.ts): of no VNI, so that no program takes it. */
#define VXLAN_PROBE bpf_htonl(0x01000000)

/* What goes between the outer Ethernet header and the inner packet. */
struct tunnel_v4 {
	struct iphdr ip;
	struct udphdr udp;
	struct vxlan vxlan;
	struct ethhdr eth;
} __attribute__((packed));

struct tunnel_v6 {
	struct ipv6hdr ip;
	struct udphdr udp;
	struct vxlan vxlan;
	struct ethhdr eth;
} __attribute__((packed));

_Static_assert(sizeof(struct tunnel_v4) == 50, "tunnel_v4");
_Static_assert(sizeof(struct tunnel_v6) == 70, "tunnel_v6");

/* Between the inner Ethernet header and the packet, where the other node is to answer the client itself: the address
 * and port that it answers from. Sent with a flow's first packet and now and then; a node that has not got it answers
 * through the tunnel. */
struct origin {
	struct addr addr;
	__be16 port;
	__be16 proto; /* ethertype of what follows */
} __attribute__((packed));

_Static_assert(sizeof(struct origin) == 20, "origin");

#define ETH_P_ORIGIN bpf_htons(0x88b5) /* IEEE: for local experiments */

static __always_inline __u16 tunnel_overhead(bool v4)
{
	return v4 ? sizeof(struct tunnel_v4) : sizeof(struct tunnel_v6);
}

/* One source port a flow, so that the underlay spreads flows and keeps each in order. */
static __always_inline __be16 tunnel_source_port(const struct pkt *p)
{
	__u32 h = p->t.src.w[3] ^ p->t.dst.w[3] ^ ((__u32)p->t.sport << 16 | p->t.dport);

	h ^= h >> 16;
	h *= 0x45d9f3b;
	h ^= h >> 16;
	return bpf_htons(0xc000 | (h & 0x3fff));
}

/* Our programs read no inner addresses: any that is locally administered will do. */
static __always_inline void inner_addresses(struct ethhdr *eth, const struct addr *via)
{
	const struct vtep *vtep = cfg.vteps ? bpf_map_lookup_elem(&np_vteps, via) : NULL;

	__builtin_memset(eth->h_source, 2, ETH_ALEN);
	if (vtep)
		__builtin_memcpy(eth->h_dest, vtep->mac, ETH_ALEN);
	else
		__builtin_memset(eth->h_dest, 2, ETH_ALEN);
}

static __always_inline void tunnel_fill(struct udphdr *udp, struct vxlan *vxlan, struct ethhdr *eth,
					const struct pkt *p, const struct addr *via, __u16 extra)
{
	udp->source = tunnel_source_port(p);
	udp->dest = cfg.tunnel_port;
	udp->len = bpf_htons(p->len + extra + sizeof(*udp) + sizeof(*vxlan) + sizeof(*eth));
	udp->check = 0; /* RFC 7348; for IPv6 RFC 6935 */
	vxlan->flags = VXLAN_VNI_VALID;
	vxlan->vni = bpf_htonl(cfg.tunnel_vni << 8);
	inner_addresses(eth, via);
	eth->h_proto = p->v4 ? bpf_htons(ETH_P_IP) : bpf_htons(ETH_P_IPV6);
}

static __always_inline void origin_fill(struct ethhdr *eth, const struct pkt *p)
{
	struct origin *o = (void *)(eth + 1);

	o->addr = p->t.dst;
	o->port = p->t.dport;
	o->proto = eth->h_proto;
	eth->h_proto = ETH_P_ORIGIN;
}

/* What the tunnel header has of the inner packet's traffic class: ECN as RFC 6040 says (normal mode), by setting DSCP
 * as well. */
static __always_inline __u8 tunnel_class(struct __sk_buff *skb, bool v4)
{
	void *ip = (void *)(long)skb->data + ETH_HLEN;

	if (ip + sizeof(__be16) > (void *)(long)skb->data_end)
		return 0;
	return traffic_class(ip, v4) & cfg.tunnel_class;
}

static __always_inline enum drop encap_v4(struct __sk_buff *skb, const struct pkt *p, const struct addr *via,
					  __u16 extra)
{
	__be16 length = bpf_htons(p->len + sizeof(struct tunnel_v4) + extra);
	__be32 self = cfg.node_v4.w[3];
	__u8 class = tunnel_class(skb, true);
	struct tunnel_v4 *h;

	if (bpf_skb_adjust_room(skb, sizeof(*h) + extra, BPF_ADJ_ROOM_MAC,
				NP_ENCAP_FLAGS(BPF_F_ADJ_ROOM_ENCAP_L3_IPV4, extra)))
		return DROP_ENCAP;
	h = (void *)(long)skb->data + ETH_HLEN;
	if ((void *)(h + 1) + extra > (void *)(long)skb->data_end)
		return DROP_ENCAP;
	ipv4_fill(&h->ip, class, length, IP_DONT_FRAGMENT, IPPROTO_UDP, self, via->w[3]);
	tunnel_fill(&h->udp, &h->vxlan, &h->eth, p, via, extra);
	if (extra)
		origin_fill(&h->eth, p);
	return DROP_NONE;
}

static __always_inline enum drop encap_v6(struct __sk_buff *skb, const struct pkt *p, const struct addr *via,
					  __u16 extra)
{
	__u8 class = tunnel_class(skb, false);
	struct tunnel_v6 *h;
	struct addr self;

	if (bpf_skb_adjust_room(skb, sizeof(*h) + extra, BPF_ADJ_ROOM_MAC,
				NP_ENCAP_FLAGS(BPF_F_ADJ_ROOM_ENCAP_L3_IPV6, extra)))
		return DROP_ENCAP;
	h = (void *)(long)skb->data + ETH_HLEN;
	if ((void *)(h + 1) + extra > (void *)(long)skb->data_end)
		return DROP_ENCAP;
	addr_of_node(&self, false);
	ipv6_fill(&h->ip, class, bpf_htons(p->len + extra + sizeof(*h) - sizeof(h->ip)), IPPROTO_UDP, &self, via);
	tunnel_fill(&h->udp, &h->vxlan, &h->eth, p, via, extra);
	if (extra)
		origin_fill(&h->eth, p);
	return DROP_NONE;
}

/* `with_origin`: tells the other node the address that the client meant, the packet's destination as it came. */
static __always_inline enum drop encap(struct __sk_buff *skb, const struct pkt *p, const struct addr *via,
				       bool with_origin)
{
	__u16 extra = with_origin ? sizeof(struct origin) : 0;

	return p->v4 ? encap_v4(skb, p, via, extra) : encap_v6(skb, p, via, extra);
}

enum decap {
	DECAP_NONE,  /* not our tunnel: leave it alone */
	DECAP_TAKEN, /* the inner packet is there now: parse again */
	DECAP_DROP,
	DECAP_SHORT, /* headers outside the linear part, or none */
};

/* RFC 6040: what the network has marked on the tunnel's header becomes the inner packet's mark. Other marks of the
 * header say nothing new. */
static __always_inline enum drop ecn_take_over(struct __sk_buff *skb, bool v4, __u8 outer)
{
	const __u32 shift = class_shift(v4);
	__be16 was, now;
	__u8 inner;

	if ((outer != ECN_CONGESTED && outer != ECN_ECT1) || bpf_skb_load_bytes(skb, ETH_HLEN, &was, sizeof(was)))
		return DROP_NONE;
	inner = traffic_class(&was, v4) & ECN_MASK;
	if (inner == ECN_NONE)
		return outer == ECN_CONGESTED ? DROP_TUNNEL_ECN : DROP_NONE;
	if (outer == ECN_ECT1 && inner != ECN_ECT0)
		return DROP_NONE;
	now = was ^ bpf_htons((inner ^ outer) << shift);
	if (bpf_skb_store_bytes(skb, ETH_HLEN, &now, sizeof(now), v4 ? 0 : BPF_F_RECOMPUTE_CSUM) ||
	    (v4 && bpf_l3_csum_replace(skb, ETH_HLEN + offsetof(struct iphdr, check), was, now, sizeof(now))))
		return DROP_REWRITE;
	return DROP_NONE;
}

/* Takes the tunnel header off a packet that another node of the cluster sent us. `origin->proto` is 0 when it carried
 * no origin. */
static __always_inline enum decap decap_linear(struct __sk_buff *skb, const struct pkt *p, struct origin *origin,
					       enum drop *why)
{
	void *data = (void *)(long)skb->data, *data_end = (void *)(long)skb->data_end;
	struct vxlan *vxlan = data + (p->v4 ? ETH_HLEN + sizeof(struct iphdr) + sizeof(struct udphdr)
					    : ETH_HLEN + sizeof(struct ipv6hdr) + sizeof(struct udphdr));
	struct ethhdr *inner = (void *)(vxlan + 1);
	const __be16 proto = p->v4 ? bpf_htons(ETH_P_IP) : bpf_htons(ETH_P_IPV6);
	__s32 length = tunnel_overhead(p->v4);
	const struct addr_info *from;
	__u8 ecn;
	struct addr self;

	addr_of_node(&self, p->v4);
	if ((void *)(inner + 1) > data_end)
		return DECAP_SHORT;
	if (vxlan->vni != bpf_htonl(cfg.tunnel_vni << 8) || !addr_eq(&p->t.dst, &self))
		return DECAP_NONE;
	*why = DROP_TUNNEL_HEADER;
	if (vxlan->flags != VXLAN_VNI_VALID)
		return DECAP_DROP;
	if (inner->h_proto == ETH_P_ORIGIN) {
		struct origin *o = (void *)(inner + 1);

		if ((void *)(o + 1) > data_end)
			return DECAP_SHORT;
		if (o->proto != proto)
			return DECAP_DROP;
		*origin = *o;
		length += sizeof(*o);
	} else if (inner->h_proto != proto) {
		return DECAP_DROP;
	}
	*why = DROP_TUNNEL_SOURCE; /* only nodes of the cluster are trusted: addresses that the agent has put there */
	from = bpf_map_lookup_elem(&np_addrs, &p->t.src);
	if (!from || from->kind != ADDR_NODE)
		return DECAP_DROP;
	ecn = traffic_class(data + ETH_HLEN, p->v4) & ECN_MASK;
	*why = DROP_TUNNEL_HEADER;
	if (bpf_skb_adjust_room(skb, -length, BPF_ADJ_ROOM_MAC, decap_flags()))
		return DECAP_DROP;
	*why = ecn_take_over(skb, p->v4, ecn);
	return *why ? DECAP_DROP : DECAP_TAKEN;
}

static __always_inline enum decap decap(struct __sk_buff *skb, const struct pkt *p, struct origin *origin,
					enum drop *why)
{
	enum decap done = decap_linear(skb, p, origin, why);

	if (done != DECAP_SHORT)
		return done;
	if (pkt_pull(skb, ETH_HLEN + tunnel_overhead(p->v4) + sizeof(struct origin)))
		done = decap_linear(skb, p, origin, why);
	return done == DECAP_SHORT ? DECAP_NONE : done;
}

#endif
