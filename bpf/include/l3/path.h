/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* Paths between nodes that are narrower than their devices: learned from ICMP errors about the tunnel's own packets,
 * which no socket of the node has sent. Layer: slow paths. */
#ifndef NP_L3_PATH_H
#define NP_L3_PATH_H

#include "conntrack/lookup.h"
#include "l3/icmp.h"

/* As the kernel's ip_rt_mtu_expires. */
#define PATH_NS (600 * SECOND_NS)
/* What senders go down to when they are told that a packet does not fit (the kernel's min_pmtu; IPv6's least MTU), in
 * the tunnel. A forged error that said less would end their connections. */
#define PATH_LEAST_V4 (552 + sizeof(struct tunnel_v4))
#define PATH_LEAST_V6 (1280 + sizeof(struct tunnel_v6))

/* What follows a tunnel packet's UDP header. */
struct tunnel_rest {
	struct vxlan vxlan;
	struct ethhdr eth;
} __attribute__((packed));

/* Does the error quote what this node may have sent in the tunnel? */
static __always_inline bool is_tunnels(const struct scratch *s, const struct quoted *quoted)
{
	struct addr self;

	addr_of_node(&self, s->p.v4);
	return s->hook == FROM_HOST && !s->p.tunnelled && quoted->proto == IPPROTO_UDP &&
	       quoted->t.sport == cfg.tunnel_port && addr_eq(&quoted->t.dst, &self);
}

/* The MTU that the error tells of; 0: of none. */
static __always_inline __u32 path_told(struct __sk_buff *skb, const struct pkt *p)
{
	const __u32 least = p->v4 ? PATH_LEAST_V4 : PATH_LEAST_V6;
	struct icmp icmp;
	__u32 mtu;

	if (bpf_skb_load_bytes(skb, p->l4, &icmp, sizeof(icmp)) ||
	    (p->v4 ? icmp.type != ICMP_UNREACHABLE || icmp.code != ICMP_CODE_FRAGMENT : icmp.type != ICMP6_TOO_BIG))
		return 0;
	mtu = bpf_ntohl(icmp.word);
	if (p->v4)
		mtu &= 0xffff;
	return mtu && mtu < least ? least : mtu;
}

/* Does it quote the packet of a flow that goes in the tunnel to this node? A sender that has seen none can hardly know
 * one. Writes walk.chain, key. */
static __noinline bool path_is_flows(struct __sk_buff *skb, struct scratch *s, const struct quoted *outer)
{
	__u32 off = outer->l4 + sizeof(struct udphdr), dir;
	struct quoted inner = {};
	struct tunnel_rest rest;
	struct ct_value *v;

	if (bpf_skb_load_bytes(skb, off, &rest, sizeof(rest)) || rest.vxlan.flags != VXLAN_VNI_VALID ||
	    rest.vxlan.vni != bpf_htonl(cfg.tunnel_vni << 8))
		return false;
	off += sizeof(rest) + (rest.eth.h_proto == ETH_P_ORIGIN ? sizeof(struct origin) : 0);
	if (quoted_read(skb, s, &inner, off))
		return false;
	dir = ct_key_of(&s->key, &inner.t, inner.proto);
	v = bpf_map_lookup_elem(&np_ct, &s->key);
	if (!v || ct_expired(v, inner.proto, s->now) || !addr_eq(&v->via, &outer->t.src))
		return false;
	return v->leg[opposite(dir)].flags & LEG_ENCAP || v->leg[dir & 1].flags & LEG_TUNNELLED;
}

/* A router on the way to another node says that the tunnel's packets are too long: flows to that node are told so with
 * their next packet that is. Writes walk.chain, key. */
static __noinline void path_learn(struct __sk_buff *skb, struct scratch *s, const struct quoted *outer)
{
	struct path *known, path = {};

	path.mtu = path_told(skb, &s->p);
	if (!path.mtu || addr_is_inner(&s->p.t.src, s->p.v4) || addr_is_multicast(&s->p.t.src, s->p.v4) ||
	    source_is_elsewhere(s) || !path_is_flows(skb, s, outer))
		return;
	known = bpf_map_lookup_elem(&np_paths, &outer->t.src);
	if (known && s->now < known->until && known->mtu < path.mtu)
		return;
	path.until = s->now + PATH_NS;
	bpf_map_update_elem(&np_paths, &outer->t.src, &path, BPF_ANY);
	count_slot(DROP_MAX + COUNT_PATH_LEARNED);
}

#endif
