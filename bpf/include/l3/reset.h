/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* The RST for a destination that is not there: a service without backends, a pod that is gone. Layer: slow paths. */
#ifndef NP_L3_RESET_H
#define NP_L3_RESET_H

#include "l3/icmp.h"

struct reset_v4 {
	struct ethhdr eth;
	struct iphdr ip;
	struct tcphdr tcp;
} __attribute__((packed));

struct reset_v6 {
	struct ethhdr eth;
	struct ipv6hdr ip;
	struct tcphdr tcp;
} __attribute__((packed));

/* The checksum is summed from the source address on, without a gap. */
_Static_assert(offsetof(struct iphdr, daddr) == offsetof(struct iphdr, saddr) + 4, "iphdr");
_Static_assert(offsetof(struct iphdr, daddr) + 4 == sizeof(struct iphdr), "iphdr");
_Static_assert(sizeof(struct reset_v6) <= sizeof(((struct answer *)0)->buf), "room for the RST");

/* TCP is refused by RST: an ICMP error that comes back while connect() still holds the socket is lost on it. */
static __always_inline bool reset_wanted(enum drop why, __u8 proto)
{
	return proto == IPPROTO_TCP && (why == DROP_POD_GONE || refusal(why));
}

/* RFC 9293 3.5.2: with the number that the other side has acknowledged, or else acknowledging what it sent. */
static __always_inline void reset_tcp(struct tcphdr *th, const struct pkt *p)
{
	__u32 sent = p->len - (p->l4 - ETH_HLEN) - p->tcp_header + !!(p->tcp_flags & TCP_SYN) +
		     !!(p->tcp_flags & TCP_FIN);
	bool acked = p->tcp_flags & TCP_ACK;

	__builtin_memset(th, 0, sizeof(*th));
	th->source = p->t.dport;
	th->dest = p->t.sport;
	th->seq = acked ? bpf_htonl(p->ack) : 0;
	th->ack_seq = acked ? 0 : bpf_htonl(p->seq + sent);
	((__u8 *)th)[12] = sizeof(*th) / 4 << 4;
	((__u8 *)th)[13] = TCP_RST | (acked ? 0 : TCP_ACK);
}

/* Writes answer.buf. */
static __noinline __u32 reset_fill_v4(struct scratch *s)
{
	struct reset_v4 *a = (void *)s->answer.buf;
	__u64 sum;

	ipv4_fill(&a->ip, 0, bpf_htons(sizeof(a->ip) + sizeof(a->tcp)), IP_DONT_FRAGMENT, IPPROTO_TCP, s->p.t.dst.w[3],
		  s->p.t.src.w[3]);
	reset_tcp(&a->tcp, &s->p);
	/* addresses and header in one go, then length and protocol of the pseudo header */
	sum = (__u32)bpf_csum_diff(0, 0, (void *)&a->ip.saddr, 8 + sizeof(a->tcp), 0);
	a->tcp.check = ~sum_fold16(sum + bpf_htons(sizeof(a->tcp)) + bpf_htons(IPPROTO_TCP));
	return sizeof(*a);
}

/* Writes answer.buf. */
static __noinline __u32 reset_fill_v6(struct scratch *s)
{
	struct reset_v6 *a = (void *)s->answer.buf;
	__u64 sum;

	ipv6_fill(&a->ip, 0, bpf_htons(sizeof(a->tcp)), IPPROTO_TCP, &s->p.t.dst, &s->p.t.src);
	reset_tcp(&a->tcp, &s->p);
	sum = (__u32)bpf_csum_diff(0, 0, (void *)&a->ip.saddr, 32 + sizeof(a->tcp), 0);
	a->tcp.check = ~sum_fold16(sum + bpf_htons(sizeof(a->tcp)) + bpf_htons(IPPROTO_TCP));
	return sizeof(*a);
}

/* Without what pads short frames; long ones may not say it. */
static __always_inline void reset_length(struct __sk_buff *skb, struct pkt *p)
{
	__u32 at = p->v4 ? offsetof(struct iphdr, tot_len) : offsetof(struct ipv6hdr, payload_len), len;
	__be16 said;

	if (bpf_skb_load_bytes(skb, ETH_HLEN + at, &said, sizeof(said)) || !said)
		return;
	len = bpf_ntohs(said) + (p->v4 ? 0 : sizeof(struct ipv6hdr));
	if (len < p->len)
		p->len = len;
}

/* Turns the packet of a TCP flow into the RST that answers it, and sends it back the way it came: in the tunnel if
 * it came by it. VERDICT_NONE when it cannot: the packet is dropped in silence. Writes answer.buf, p. */
static __noinline enum verdict reset_answer(struct __sk_buff *skb, struct scratch *s)
{
	__u8 eth[ETH_HLEN];
	struct pkt *p = &s->p;
	struct ct_tuple back;
	__u32 size;
	enum verdict verdict;

	if (p->tcp_flags & TCP_RST || !answer_allowed(skb, s) || bpf_skb_load_bytes(skb, 0, eth, sizeof(eth)))
		return VERDICT_NONE;
	answer_eth((void *)s->answer.buf, eth, p->v4);
	reset_length(skb, p);
	size = p->v4 ? reset_fill_v4(s) : reset_fill_v6(s);
	if (size > sizeof(s->answer.buf) || bpf_skb_change_tail(skb, size, 0) ||
	    bpf_skb_store_bytes(skb, 0, s->answer.buf, size, BPF_F_RECOMPUTE_CSUM))
		return VERDICT_NONE;
	mark_set_decided(skb);
	if (!p->tunnelled)
		return bpf_redirect(skb->ifindex, hook_is_from(s->hook) ? 0 : BPF_F_INGRESS);
	ct_reverse(&back, &p->t);
	p->t = back;
	p->len = size - ETH_HLEN;
	verdict = send_in_tunnel(skb, p, &s->tunnel_from, skb->ifindex, false);
	return is_dropped(verdict) ? VERDICT_NONE : verdict;
}

#endif
