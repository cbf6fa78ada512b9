/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* ICMP errors: those we make, and those of others that are about a translated flow. Layer: slow paths. */
#ifndef NP_L3_ICMP_H
#define NP_L3_ICMP_H

#include "base/parse.h"
#include "l3/header.h"

struct answer_v4 {
	struct ethhdr eth;
	struct iphdr ip;
	struct icmp icmp;
} __attribute__((packed));

struct answer_v6 {
	struct ethhdr eth;
	struct ipv6hdr ip;
	struct icmp icmp;
} __attribute__((packed));

/* Checksums are summed from the IPv6 source on, without a gap. */
_Static_assert(offsetof(struct ipv6hdr, daddr) == offsetof(struct ipv6hdr, saddr) + sizeof(struct addr), "ipv6hdr");
_Static_assert(offsetof(struct ipv6hdr, daddr) + sizeof(struct addr) == sizeof(struct ipv6hdr), "ipv6hdr");
_Static_assert(sizeof(struct answer_v6) + QUOTE_MAX <= sizeof(((struct answer *)0)->buf), "room for the answer");

/* How much of the packet the error quotes: in steps, since the kernel trims a packet only behind a checksum it still
 * has to fill in, and checksums are summed in words. */
static __always_inline __u32 quote_length(const struct pkt *p)
{
	__u32 head = p->v4 ? sizeof(struct iphdr) : sizeof(struct ipv6hdr);

	if (p->len >= head + 28)
		return head + 28;
	return p->len >= head + 20 ? head + 20 : head + 8;
}

static __always_inline void answer_eth(struct ethhdr *eth, const __u8 *was, bool v4)
{
	__builtin_memcpy(eth->h_dest, was + ETH_ALEN, ETH_ALEN);
	__builtin_memcpy(eth->h_source, was, ETH_ALEN);
	eth->h_proto = v4 ? bpf_htons(ETH_P_IP) : bpf_htons(ETH_P_IPV6);
}

static __always_inline void answer_fill_icmp(struct icmp *icmp, const __u8 *what, __u32 mtu)
{
	icmp->type = what[0];
	icmp->code = what[1];
	icmp->checksum = 0;
	icmp->word = bpf_htonl(mtu);
}

/* Reads answer.from; writes answer.buf. */
static __noinline void answer_fill_v4(struct scratch *s, const __u8 *what, __u32 quote, __u32 mtu)
{
	struct answer_v4 *a = (void *)s->answer.buf;

	ipv4_fill(&a->ip, 0, bpf_htons(sizeof(a->ip) + sizeof(a->icmp) + quote), 0, IPPROTO_ICMP, s->answer.from.w[3],
		  s->p.t.src.w[3]);
	answer_fill_icmp(&a->icmp, what, mtu);
}

/* Reads answer.from; writes answer.buf. */
static __noinline void answer_fill_v6(struct scratch *s, const __u8 *what, __u32 quote, __u32 mtu)
{
	struct answer_v6 *a = (void *)s->answer.buf;

	ipv6_fill(&a->ip, 0, bpf_htons(sizeof(a->icmp) + quote), IPPROTO_ICMPV6, &s->answer.from, &s->p.t.src);
	answer_fill_icmp(&a->icmp, what, mtu);
}

/* The checksum of message and quote, for IPv6 with the pseudo header, in s->answer.buf. */
static __always_inline void answer_checksum(struct scratch *s, __u32 quote)
{
	struct answer_v4 *a4 = (void *)s->answer.buf;
	struct answer_v6 *a6 = (void *)s->answer.buf;
	__s64 sum;

	if (quote > QUOTE_MAX)
		return;
	if (s->p.v4) {
		sum = bpf_csum_diff(0, 0, (void *)&a4->icmp, sizeof(a4->icmp) + quote, 0);
		a4->icmp.checksum = ~sum_fold16((__u32)sum);
		return;
	}
	sum = bpf_csum_diff(0, 0, (void *)&a6->ip.saddr, 32 + sizeof(a6->icmp) + quote, 0);
	a6->icmp.checksum = ~sum_fold16((__u64)(__u32)sum + a6->ip.payload_len + bpf_htons(IPPROTO_ICMPV6));
}

static __always_inline bool refusal(enum drop why)
{
	return why == DROP_NO_BACKEND || (why == DROP_STRAY_SERVICE && cfg.stray_service == STRAY_REFUSE);
}

/* Does the sender get an ICMP error for this reason? */
static __always_inline bool answer_wanted(enum drop why)
{
	return why == DROP_TTL || why == DROP_TOO_BIG || refusal(why);
}

#define ANSWERS_A_SECOND 1000 /* on each CPU; as the kernel's icmp_msgs_per_sec */
#define ANSWER_RATES 64

struct answer_rate {
	__u64 since;
	__u32 count;
	__u32 pad;
};

/* Each object's own, and of each CPU: it outlives packets, and what is here is lost with the programs. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, ANSWER_RATES);
	__type(key, __u32);
	__type(value, struct answer_rate);
} np_answer_rate SEC(".maps");

/* The rate limit of ICMP errors and TCP resets that we make: a sender with forged sources must not flood others with
 * our answers. A pod, which cannot forge them, has the rate of its device, and each other hook has its own: what one
 * uses up is there for the others. */
static __always_inline bool answer_allowed(struct __sk_buff *skb, const struct scratch *s)
{
	const __u32 hooks = TO_HOST + 1;
	__u32 which = s->hook == FROM_WORKLOAD ? hooks + skb->ifindex % (ANSWER_RATES - hooks) : s->hook;
	struct answer_rate *rate = bpf_map_lookup_elem(&np_answer_rate, &which);
	const __u64 now = s->now;

	if (!rate)
		return false;
	if (now - rate->since > SECOND_NS) {
		rate->since = now;
		rate->count = 0;
	}
	return rate->count++ < ANSWERS_A_SECOND;
}

/* Type and code for a reason. */
static __always_inline void answer_kind(enum drop why, bool v4, __u8 *what)
{
	if (why == DROP_TTL) {
		what[0] = v4 ? ICMP_TIME_EXCEEDED : ICMP6_TIME_EXCEEDED;
	} else if (why == DROP_TOO_BIG) {
		what[0] = v4 ? ICMP_UNREACHABLE : ICMP6_TOO_BIG;
		what[1] = v4 ? ICMP_CODE_FRAGMENT : 0;
	} else {
		what[0] = v4 ? ICMP_UNREACHABLE : ICMP6_UNREACHABLE;
		what[1] = v4 ? ICMP_CODE_PORT : ICMP6_CODE_PORT;
	}
}

/* Whose address the error comes from. What is refused, or does not fit the way to its backend, is so where its sender
 * asked; else the node is a router. To this node's own packet the destination answers: from itself it would take
 * nothing. Reads draft.v; writes answer.from. */
static __noinline void answer_source(struct scratch *s, enum drop why)
{
	const struct ct_value *v = &s->draft.v;
	const __u32 flags = v->leg[s->dir & 1].flags;
	const bool to_backend = why == DROP_TOO_BIG && (flags & (LEG_NAT | LEG_ANSWER)) == LEG_NAT &&
				!addr_eq(&v->out.dst, &s->p.t.dst);

	if (to_backend || refusal(why) || !hook_is_from(s->hook))
		s->answer.from = s->p.t.dst;
	else
		addr_of_node(&s->answer.from, s->p.v4);
}

/* Turns the packet into an ICMP error about itself and sends it back the way it came. VERDICT_NONE when it
 * cannot: the packet is dropped in silence. Reads draft.v; writes answer. */
static __noinline enum verdict icmp_answer(struct __sk_buff *skb, struct scratch *s, enum drop why, __u32 mtu)
{
	__u32 head, quote = quote_length(&s->p), size;
	__u8 what[2] = {}, eth[ETH_HLEN];

	answer_source(s, why);
	if (addr_is_zero(&s->answer.from) || s->p.tunnelled || icmp_is_error(skb, &s->p) || s->p.fragment ||
	    addr_is_multicast(&s->p.t.src, s->p.v4) || !answer_allowed(skb, s))
		return VERDICT_NONE;
	answer_kind(why, s->p.v4, what);
	head = s->p.v4 ? sizeof(struct answer_v4) : sizeof(struct answer_v6);
	if (bpf_skb_load_bytes(skb, 0, eth, sizeof(eth)) || quote > QUOTE_MAX ||
	    bpf_skb_load_bytes(skb, ETH_HLEN, s->answer.buf + head, quote))
		return VERDICT_NONE;
	answer_eth((void *)s->answer.buf, eth, s->p.v4);
	if (s->p.v4)
		answer_fill_v4(s, what, quote, why == DROP_TOO_BIG ? mtu : 0);
	else
		answer_fill_v6(s, what, quote, why == DROP_TOO_BIG ? mtu : 0);
	answer_checksum(s, quote);
	size = head + quote;
	if (size > sizeof(s->answer.buf) || bpf_skb_change_tail(skb, size, 0) ||
	    bpf_skb_store_bytes(skb, 0, s->answer.buf, size, BPF_F_RECOMPUTE_CSUM))
		return VERDICT_NONE;
	count_slot(DROP_MAX + COUNT_ICMP_SENT);
	mark_set_decided(skb);
	/* on its way out it was this node's own: the answer comes in to it */
	return bpf_redirect(skb->ifindex, hook_is_from(s->hook) ? 0 : BPF_F_INGRESS);
}

/* ---- others' errors about a flow ------------------------------------------------------------------ */

/* An echo has its id in both ports, and once in the packet. */
static __always_inline bool quoted_is_echo(const struct quoted *q)
{
	return q->proto == IPPROTO_ICMP || q->proto == IPPROTO_ICMPV6;
}

/* The packet at `off`. Writes walk.chain. */
static __noinline enum drop quoted_read(struct __sk_buff *skb, struct scratch *s, struct quoted *q, __u32 off)
{
	const struct pkt *p = &s->p;
	__be16 ports[2];
	struct ipv6hdr ip6;
	struct iphdr ip;

	if (p->v4) {
		if (bpf_skb_load_bytes(skb, off, &ip, sizeof(ip)))
			return DROP_SHORT;
		addr_from_v4(&q->t.dst, ip.saddr);
		addr_from_v4(&q->t.src, ip.daddr);
		q->has_ends = 1;
		if (ip.ihl < 5 || (ip.frag_off & IP_OFFSET_MASK))
			return DROP_SHORT;
		q->proto = ip.protocol;
		off += ip.ihl * 4;
	} else {
		if (bpf_skb_load_bytes(skb, off, &ip6, sizeof(ip6)))
			return DROP_SHORT;
		addr_from_v6(&q->t.dst, ip6.saddr.in6_u.u6_addr32);
		addr_from_v6(&q->t.src, ip6.daddr.in6_u.u6_addr32);
		q->has_ends = 1;
		if (chain_read(skb, off + sizeof(ip6), ip6.nexthdr) || s->walk.chain.offset & bpf_htons(0xfff8))
			return DROP_SHORT;
		q->proto = s->walk.chain.proto;
		off = s->walk.chain.l4;
	}
	if (quoted_is_echo(q)) {
		if (bpf_skb_load_bytes(skb, off + offsetof(struct icmp, id), ports, 2))
			return DROP_SHORT;
		ports[1] = ports[0];
	} else if (bpf_skb_load_bytes(skb, off, ports, sizeof(ports))) {
		return DROP_SHORT;
	}
	q->t.dport = ports[0];
	q->t.sport = ports[1];
	q->l4 = off;
	return DROP_NONE;
}

/* Shows the error's receiver the addresses it knows: outer destination (and source, when the backend itself speaks),
 * quoted addresses and ports. `out` is what an answer with the quoted tuple leaves as. */
static __noinline enum drop icmp_translate(struct __sk_buff *skb, struct pkt *p, const struct quoted *q,
					   const struct ct_tuple *out)
{
	const struct ct_tuple *was = &q->t;
	const bool echo = quoted_is_echo(q);
	const struct addr *src = addr_eq(&p->t.src, &was->src) ? &out->src : &p->t.src;
	__u64 outer = addr_diff(&p->t.src, src, p->v4) + addr_diff(&p->t.dst, &out->dst, p->v4);
	__u64 inner = addr_diff(&was->src, &out->src, p->v4) + addr_diff(&was->dst, &out->dst, p->v4);
	__u64 ports = (__u64)(__u16)~was->sport + out->sport + (echo ? 0 : (__u64)(__u16)~was->dport + out->dport);
	__be16 quoted[2] = {out->dport, out->sport};
	__u32 at = p->l4 + sizeof(struct icmp), csum = p->l4 + offsetof(struct icmp, checksum);

	if (bpf_skb_store_bytes(skb, q->l4 + (echo ? offsetof(struct icmp, id) : 0), quoted, echo ? 2 : sizeof(quoted),
				0))
		return DROP_REWRITE;
	if (p->v4) {
		if (bpf_skb_store_bytes(skb, at + offsetof(struct iphdr, saddr), &out->dst.w[3], 4, 0) ||
		    bpf_skb_store_bytes(skb, at + offsetof(struct iphdr, daddr), &out->src.w[3], 4, 0) ||
		    bpf_l3_csum_replace(skb, at + offsetof(struct iphdr, check), 0, sum_fold32(inner), 0) ||
		    bpf_l4_csum_replace(skb, csum, 0, sum_fold32(ports), 0) ||
		    bpf_skb_store_bytes(skb, ETH_HLEN + offsetof(struct iphdr, saddr), &src->w[3], 4, 0) ||
		    bpf_skb_store_bytes(skb, ETH_HLEN + offsetof(struct iphdr, daddr), &out->dst.w[3], 4, 0) ||
		    bpf_l3_csum_replace(skb, ETH_HLEN + offsetof(struct iphdr, check), 0, sum_fold32(outer), 0))
			return DROP_REWRITE;
	} else {
		if (bpf_skb_store_bytes(skb, at + offsetof(struct ipv6hdr, saddr), &out->dst, 16,
					BPF_F_RECOMPUTE_CSUM) ||
		    bpf_skb_store_bytes(skb, at + offsetof(struct ipv6hdr, daddr), &out->src, 16,
					BPF_F_RECOMPUTE_CSUM) ||
		    bpf_skb_store_bytes(skb, ETH_HLEN + offsetof(struct ipv6hdr, saddr), src, 16,
					BPF_F_RECOMPUTE_CSUM) ||
		    bpf_skb_store_bytes(skb, ETH_HLEN + offsetof(struct ipv6hdr, daddr), &out->dst, 16,
					BPF_F_RECOMPUTE_CSUM) ||
		    bpf_l4_csum_replace(skb, csum, 0, sum_fold32(outer), BPF_F_PSEUDO_HDR) ||
		    bpf_l4_csum_replace(skb, csum, 0, sum_fold32(inner + ports), 0))
			return DROP_REWRITE;
	}
	p->t.src = *src;
	p->t.dst = out->dst;
	return DROP_NONE;
}

#endif
