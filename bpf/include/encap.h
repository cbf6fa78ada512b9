/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* The NodePort tunnel: VXLAN put on and taken off by the programs themselves, inner and outer of one family. Layer: tc programs. */
#ifndef NP_ENCAP_H
#define NP_ENCAP_H

#include "ct.h"
#include "mark.h"

struct vxlan {
	__be32 flags;		/* 0x08000000: the VNI is valid */
	__be32 vni;		/* in the upper 24 bits */
};

#define VXLAN_VNI_VALID bpf_htonl(0x08000000)

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

static __always_inline void tunnel_fill(struct udphdr *udp, struct vxlan *vxlan, struct ethhdr *eth, const struct pkt *p)
{
	udp->source = tunnel_source_port(p);
	udp->dest = cfg.tunnel_port;
	udp->len = bpf_htons(p->len + sizeof(*udp) + sizeof(*vxlan) + sizeof(*eth));
	udp->check = 0;	/* RFC 7348; for IPv6 RFC 6935 */
	vxlan->flags = VXLAN_VNI_VALID;
	vxlan->vni = bpf_htonl(cfg.tunnel_vni << 8);
	__builtin_memset(eth->h_dest, 2, ETH_ALEN); /* nobody reads them: locally administered */
	__builtin_memset(eth->h_source, 2, ETH_ALEN);
	eth->h_proto = p->v4 ? bpf_htons(ETH_P_IP) : bpf_htons(ETH_P_IPV6);
}

#define TUNNEL_V4_START bpf_htons(0x4500)
#define TUNNEL_V4_DF bpf_htons(0x4000)
#define TUNNEL_V4_TTL_PROTO bpf_htons(64 << 8 | IPPROTO_UDP)

static __always_inline enum drop encap_v4(struct __sk_buff *skb, const struct pkt *p, const struct addr *via)
{
	__be16 length = bpf_htons(p->len + sizeof(struct tunnel_v4));
	__be32 self = cfg.node_v4.w[3];
	struct tunnel_v4 *h;

	if (bpf_skb_adjust_room(skb, sizeof(*h), BPF_ADJ_ROOM_MAC, NP_ENCAP_FLAGS(BPF_F_ADJ_ROOM_ENCAP_L3_IPV4)))
		return DROP_ENCAP;
	h = (void *)(long)skb->data + ETH_HLEN;
	if ((void *)(h + 1) > (void *)(long)skb->data_end)
		return DROP_ENCAP;
	*(__be16 *)&h->ip = TUNNEL_V4_START;
	h->ip.tot_len = length;
	h->ip.id = 0;
	h->ip.frag_off = TUNNEL_V4_DF;
	*(__be16 *)&h->ip.ttl = TUNNEL_V4_TTL_PROTO;
	h->ip.check = ~sum_fold16((__u64)TUNNEL_V4_START + length + TUNNEL_V4_DF + TUNNEL_V4_TTL_PROTO + self + via->w[3]);
	h->ip.saddr = self;
	h->ip.daddr = via->w[3];
	tunnel_fill(&h->udp, &h->vxlan, &h->eth, p);
	return DROP_NONE;
}

static __always_inline enum drop encap_v6(struct __sk_buff *skb, const struct pkt *p, const struct addr *via)
{
	struct tunnel_v6 *h;
	struct addr self;

	if (bpf_skb_adjust_room(skb, sizeof(*h), BPF_ADJ_ROOM_MAC, NP_ENCAP_FLAGS(BPF_F_ADJ_ROOM_ENCAP_L3_IPV6)))
		return DROP_ENCAP;
	h = (void *)(long)skb->data + ETH_HLEN;
	if ((void *)(h + 1) > (void *)(long)skb->data_end)
		return DROP_ENCAP;
	addr_of_node(&self, false);
	*(__be32 *)&h->ip = bpf_htonl(0x60000000);
	h->ip.payload_len = bpf_htons(p->len + sizeof(*h) - sizeof(h->ip));
	h->ip.nexthdr = IPPROTO_UDP;
	h->ip.hop_limit = 64;
	addr_to_v6(h->ip.saddr.in6_u.u6_addr32, &self);
	addr_to_v6(h->ip.daddr.in6_u.u6_addr32, via);
	tunnel_fill(&h->udp, &h->vxlan, &h->eth, p);
	return DROP_NONE;
}

static __always_inline enum drop encap(struct __sk_buff *skb, const struct pkt *p, const struct addr *via)
{
	return p->v4 ? encap_v4(skb, p, via) : encap_v6(skb, p, via);
}

enum decap {
	DECAP_NONE,	/* not our tunnel: leave it alone */
	DECAP_TAKEN,	/* the inner packet is there now: parse again */
	DECAP_DROP,
};

/* Takes the tunnel header off a packet that another node of the cluster sent us. */
static __always_inline enum decap decap(struct __sk_buff *skb, const struct pkt *p, enum drop *why)
{
	void *data = (void *)(long)skb->data, *data_end = (void *)(long)skb->data_end;
	struct vxlan *vxlan = data + (p->v4 ? ETH_HLEN + sizeof(struct iphdr) + sizeof(struct udphdr)
					    : ETH_HLEN + sizeof(struct ipv6hdr) + sizeof(struct udphdr));
	struct ethhdr *inner = (void *)(vxlan + 1);
	const struct addr_info *from;
	struct addr self;

	addr_of_node(&self, p->v4);
	if ((void *)(inner + 1) > data_end || vxlan->vni != bpf_htonl(cfg.tunnel_vni << 8) || !addr_eq(&p->t.dst, &self))
		return DECAP_NONE;
	*why = DROP_TUNNEL_HEADER;
	if (vxlan->flags != VXLAN_VNI_VALID || inner->h_proto != (p->v4 ? bpf_htons(ETH_P_IP) : bpf_htons(ETH_P_IPV6)))
		return DECAP_DROP;
	*why = DROP_TUNNEL_SOURCE;
	from = bpf_map_lookup_elem(&np_addrs, &p->t.src);
	if (!from || from->kind != ADDR_NODE)
		return DECAP_DROP;
	*why = DROP_TUNNEL_HEADER;
	if (bpf_skb_adjust_room(skb, -(__s32)tunnel_overhead(p->v4), BPF_ADJ_ROOM_MAC, BPF_F_ADJ_ROOM_FIXED_GSO))
		return DECAP_DROP;
	return DECAP_TAKEN;
}

#endif
