/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* IPv4 packets that may be cut and do not fit the tunnel: each fragment leaves in a tunnel packet of its own. Layer:
 * slow paths. */
#ifndef NP_L3_FRAGMENT_H
#define NP_L3_FRAGMENT_H

#include "base/scratch.h"
#include "l3/route.h"

#define CUT_MOST 9216 /* bytes behind the IP header */
#define CUT_PARTS 8
/* Of one that is below twice CUT_MOST already. Old verifiers learn from this that it is not negative, and that the sum
 * of it and 1 is not 0. */
#define CUT_BOUND(variable)           \
	do {                          \
		opaque(variable);     \
		(variable) &= 0x3fff; \
	} while (0)
#define SUM_MOST 512 /* bytes that bpf_csum_diff takes at once before 6.13 */

struct cut {
	/* behind the IP header; verifiers add the most that an offset may be to the most that a length may be */
	__u8 bytes[2 * CUT_MOST];
	__u64 unfinished; /* the kernel is to fill in a checksum where the tunnel's UDP header has its own */
};

/* Each object's own, and of each CPU, as the scratch is. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct cut);
} np_cut SEC(".maps");

/* What stands before a fragment's bytes. */
struct cut_head {
	struct ethhdr eth;
	struct tunnel_v4 tunnel;
	struct iphdr ip;
} __attribute__((packed));
_Static_assert(sizeof(struct cut_head) <= sizeof(((struct answer *)0)->buf), "room for the headers");

/* May the packet be cut? TCP is told instead, for it can send again. Reads draft.v, first_fragment. */
static __always_inline bool is_cuttable(const struct scratch *s)
{
	const struct pkt *p = &s->p;

	return p->v4 && !p->dont_fragment && p->l4 == ETH_HLEN + sizeof(struct iphdr) &&
	       s->draft.v.leg[s->dir & 1].flags & LEG_ENCAP &&
	       (p->fragment || s->first_fragment || p->proto == IPPROTO_UDP || p->proto == IPPROTO_ICMP);
}

/* The sum of the first `length` bytes. */
static __noinline __u16 cut_sum(struct cut *cut, __u64 length)
{
	__s64 sum = 0;

	CUT_BOUND(length);
	if (length >= CUT_MOST)
		return 0;
	__builtin_memset(cut->bytes + length, 0, 4);
#pragma unroll
	for (__u32 at = 0; at < CUT_MOST; at += SUM_MOST) {
		__u64 size = (length - at + 3) & ~3ULL;

		if (at >= length)
			break;
		CUT_BOUND(size);
		if (size > SUM_MOST)
			size = SUM_MOST;
		sum = bpf_csum_diff(0, 0, (void *)(cut->bytes + at), size, (__u32)sum);
	}
	return sum_fold16((__u32)sum);
}

static __always_inline __u16 pseudo_sum(const struct iphdr *ip, __be16 length)
{
	return sum_fold16((__u64)ip->saddr + ip->daddr + bpf_htons(IPPROTO_UDP) + length);
}

/* What this node's pods send may have the pseudo header's sum alone for a checksum, and leave the rest to the device:
 * that is done here. The kernel does it as well, at the same place: there the tunnel's UDP header is then. */
static __always_inline void cut_checksum(struct scratch *s, struct cut *cut, const struct iphdr *ip, __u64 length)
{
	struct udphdr *udp = (void *)cut->bytes;
	__u16 sum;

	cut->unfinished = s->p.proto == IPPROTO_UDP && !s->p.fragment && !s->first_fragment &&
			  udp->check == pseudo_sum(ip, udp->len);
	if (!cut->unfinished)
		return;
	sum = ~cut_sum(cut, length);
	udp->check = sum ? sum : 0xffff;
}

/* Translates the packet, which has `length` bytes behind its header, and reads it to `cut` and the header to
 * answer.buf. Reads draft.v; writes p, answer.buf. */
static __noinline enum drop cut_read(struct __sk_buff *skb, struct scratch *s, struct cut *cut, __u64 length)
{
	const struct ct_value *v = &s->draft.v;
	const bool hop = hook_is_from(s->hook) && !s->p.tunnelled;
	struct cut_head *h = (void *)s->answer.buf;
	enum drop why = DROP_NONE;

	if (!pkt_pull(skb, ETH_HLEN + sizeof(struct iphdr) + sizeof(struct udphdr)))
		return DROP_ENCAP;
	if (hop)
		s->p.ttl--;
	if (v->leg[s->dir & 1].flags & LEG_NAT)
		why = rewrite(skb, &s->p, &v->out, true);
	else if (hop)
		why = rewrite_ttl(skb, &s->p);
	if (why)
		return why;
	length--;
	CUT_BOUND(length);
	if (length >= CUT_MOST || bpf_skb_load_bytes(skb, ETH_HLEN, &h->ip, sizeof(h->ip)) ||
	    bpf_skb_load_bytes(skb, ETH_HLEN + sizeof(h->ip), cut->bytes, length + 1))
		return DROP_ENCAP;
	return DROP_NONE;
}

/* Makes the packet the tunnel packet of the fragment whose `size` bytes begin `at`.
 * Reads draft.v; writes p, answer.buf. */
static __noinline enum drop cut_write(struct __sk_buff *skb, struct scratch *s, struct cut *cut, __u64 at, __u64 size)
{
	struct cut_head *h = (void *)s->answer.buf;
	struct tunnel_v4 *t = &h->tunnel;
	__be16 length;
	void *bytes;

	CUT_BOUND(at);
	if (at >= CUT_MOST)
		return DROP_ENCAP;
	bytes = cut->bytes + at;
	opaque(bytes); /* while its bounds are known: old verifiers forget those of numbers on the stack */
	s->p.len = sizeof(h->ip) + size;
	h->ip.tot_len = bpf_htons(s->p.len);
	h->ip.check = 0;
	h->ip.check = ~sum_fold16((__u32)bpf_csum_diff(0, 0, (void *)&h->ip, sizeof(h->ip), 0));
	length = bpf_htons(s->p.len + sizeof(*t));
	ipv4_fill(&t->ip, traffic_class(&h->ip, true) & cfg.tunnel_class, length, IP_DONT_FRAGMENT, IPPROTO_UDP,
		  cfg.node_v4.w[3], s->draft.v.via.w[3]);
	tunnel_fill(&t->udp, &t->vxlan, &t->eth, &s->p, &s->draft.v.via, 0);
	if (cut->unfinished)
		t->udp.check = pseudo_sum(&t->ip, t->udp.len);
	size--;
	CUT_BOUND(size);
	if (size >= CUT_MOST || bpf_skb_change_tail(skb, sizeof(*h) + size + 1, 0) ||
	    bpf_skb_store_bytes(skb, 0, h, sizeof(*h), BPF_F_RECOMPUTE_CSUM) ||
	    bpf_skb_store_bytes(skb, sizeof(*h), bytes, size + 1, BPF_F_RECOMPUTE_CSUM))
		return DROP_ENCAP;
	return DROP_NONE;
}

/* The frame's ends on the way to the node; none while its neighbour is not known. Writes answer.buf, fib. */
static __always_inline bool cut_way(struct __sk_buff *skb, struct scratch *s)
{
	struct cut_head *h = (void *)s->answer.buf;
	struct addr self;
	long ret;

	addr_of_node(&self, true);
	fib_fill(&s->fib, skb->ifindex, &self, &s->draft.v.via);
	ret = bpf_fib_lookup(skb, &s->fib, sizeof(s->fib), 0);
	__builtin_memcpy(h->eth.h_dest, s->fib.dmac, ETH_ALEN);
	__builtin_memcpy(h->eth.h_source, s->fib.smac, ETH_ALEN);
	h->eth.h_proto = bpf_htons(ETH_P_IP);
	return fib_found(ret);
}

/* Cuts the packet, which does not fit its way into the tunnel, and sends it on. All fragments but the last leave as
 * copies. While the neighbour is not known the first one asks for it, and is all that leaves.
 * Reads draft.v; writes p, answer.buf, fib. */
static __noinline enum verdict cut_send(struct __sk_buff *skb, struct scratch *s)
{
	const __u32 ifindex = s->draft.v.leg[s->dir & 1].ifindex;
	const __u64 length = s->p.len - sizeof(struct iphdr);
	const __u64 part = (s->mtu - sizeof(struct iphdr)) & 0xfff8;
	struct cut_head *h = (void *)s->answer.buf;
	struct cut *cut;
	__be16 fragment;
	__u32 zero = 0;
	enum drop why;
	bool known;

	cut = bpf_map_lookup_elem(&np_cut, &zero);
	if (!cut || !part || length > part * CUT_PARTS || length >= CUT_MOST)
		return dropped(DROP_TOO_BIG);
	why = cut_read(skb, s, cut, length);
	if (why)
		return dropped(why);
	cut_checksum(s, cut, &h->ip, length);
	fragment = h->ip.frag_off;
	known = cut_way(skb, s);
	mark_set_decided(skb);
	count_slot(DROP_MAX + COUNT_FRAGMENTED);
#pragma unroll
	for (int i = 0; i < CUT_PARTS; i++) {
		const __u64 at = i * part;
		const bool last = at + part >= length;

		h->ip.frag_off = bpf_htons(bpf_ntohs(fragment) + at / 8) | (last ? 0 : IP_MORE);
		why = cut_write(skb, s, cut, at, last ? length - at : part);
		if (why)
			return dropped(why);
		if (last || !known)
			break;
		bpf_clone_redirect(skb, ifindex, 0);
	}
	return send_tunnelled(skb, &s->draft.v.via, ifindex, true);
}

#endif
