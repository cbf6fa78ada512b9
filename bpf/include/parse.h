/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* Reading what the fast path would not: options, extension headers, fragments, ICMP. Layer: slow paths. */
#ifndef NP_PARSE_H
#define NP_PARSE_H

#include "scratch.h"

#define IP_OFFSET_MASK bpf_htons(0x1fff)
#define IP_MORE bpf_htons(0x2000)
#define EXTENSION_HEADERS_MAX 6

struct v6_extension {
	__u8 next;
	__u8 len;	/* in 8 bytes, without the first 8 */
};

struct v6_fragment {
	__u8 next;
	__u8 reserved;
	__be16 offset;	/* upper 13 bits; lowest: more follow */
	__be32 id;
};

/* Ports of an echo are its id; other ICMP has none and is not a flow of its own. */
static __always_inline enum drop parse_icmp(struct __sk_buff *skb, struct pkt *p)
{
	struct icmp icmp;

	if (bpf_skb_load_bytes(skb, p->l4, &icmp, sizeof(icmp)))
		return DROP_SHORT;
	p->tcp_flags = 0;
	p->t.sport = 0;
	p->t.dport = 0;
	if (p->v4 ? icmp.type == ICMP_ECHO || icmp.type == ICMP_ECHO_REPLY : icmp.type == ICMP6_ECHO || icmp.type == ICMP6_ECHO_REPLY) {
		p->t.sport = icmp.id;
		p->t.dport = icmp.id;
	}
	return DROP_NONE;
}

static __noinline enum drop parse_l4(struct __sk_buff *skb, struct pkt *p)
{
	struct tcphdr th;
	struct udphdr uh;

	switch (p->proto) {
	case IPPROTO_TCP:
		if (bpf_skb_load_bytes(skb, p->l4, &th, sizeof(th)))
			return DROP_SHORT;
		p->t.sport = th.source;
		p->t.dport = th.dest;
		p->tcp_flags = ((__u8 *)&th)[13];
		p->tcp_header = (((__u8 *)&th)[12] >> 4) * 4;
		p->window = bpf_ntohs(th.window);
		p->seq = bpf_ntohl(th.seq);
		p->ack = bpf_ntohl(th.ack_seq);
		return DROP_NONE;
	case IPPROTO_UDP:
		if (bpf_skb_load_bytes(skb, p->l4, &uh, sizeof(uh)))
			return DROP_SHORT;
		p->t.sport = uh.source;
		p->t.dport = uh.dest;
		p->tcp_flags = 0;
		return DROP_NONE;
	case IPPROTO_SCTP:
		/* for rules, and to tell associations apart: they are not translated */
		if (bpf_skb_load_bytes(skb, p->l4, &p->t.sport, 4))
			return DROP_SHORT;
		p->tcp_flags = 0;
		return DROP_NONE;
	case IPPROTO_ICMP:
	case IPPROTO_ICMPV6:
		return parse_icmp(skb, p);
	}
	p->t.sport = 0;
	p->t.dport = 0;
	p->tcp_flags = 0;
	return DROP_NONE;
}

/* A later fragment has no ports: they were learned from the first, which must have come before. */
static __noinline enum drop parse_fragment(struct __sk_buff *skb, struct scratch *s, __be32 id, bool first)
{
	struct frag_key *k = &s->frag;
	struct pkt *p = &s->p;
	struct frag *known;

	__builtin_memset(k, 0, sizeof(*k));
	k->src = p->t.src;
	k->dst = p->t.dst;
	k->id = id;
	k->proto = p->proto;
	if (first) {
		s->first_fragment = 1;
		return parse_l4(skb, p);
	}
	known = bpf_map_lookup_elem(&np_frags, k);
	if (!known)
		return DROP_FRAGMENT_UNKNOWN;
	p->t.sport = known->sport;
	p->t.dport = known->dport;
	p->tcp_flags = 0;
	p->fragment = 1;
	return DROP_NONE;
}

/* Once it is clear that the sender may speak for this address. */
static __noinline void fragment_note(struct scratch *s)
{
	struct frag f;

	f.sport = s->p.t.sport;
	f.dport = s->p.t.dport;
	bpf_map_update_elem(&np_frags, &s->frag, &f, BPF_ANY);
}

static __noinline enum drop parse_v4(struct __sk_buff *skb, struct scratch *s)
{
	struct pkt *p = &s->p;
	struct iphdr ip;

	if (bpf_skb_load_bytes(skb, ETH_HLEN, &ip, sizeof(ip)))
		return DROP_SHORT;
	if (ip.version != 4 || ip.ihl < 5)
		return DROP_MALFORMED;
	addr_from_v4(&p->t.src, ip.saddr);
	addr_from_v4(&p->t.dst, ip.daddr);
	p->v4 = 1;
	p->ttl = ip.ttl;
	p->proto = ip.protocol;
	p->dont_fragment = !!(ip.frag_off & bpf_htons(0x4000));
	p->l4 = ETH_HLEN + ip.ihl * 4;
	if (ip.frag_off & (IP_OFFSET_MASK | IP_MORE))
		return parse_fragment(skb, s, ip.id, !(ip.frag_off & IP_OFFSET_MASK));
	return parse_l4(skb, p);
}

static __noinline enum drop parse_v6(struct __sk_buff *skb, struct scratch *s)
{
	struct pkt *p = &s->p;
	struct v6_extension ext;
	struct v6_fragment frag;
	struct ipv6hdr ip;
	__u32 off = ETH_HLEN + sizeof(ip);

	if (bpf_skb_load_bytes(skb, ETH_HLEN, &ip, sizeof(ip)))
		return DROP_SHORT;
	addr_from_v6(&p->t.src, ip.saddr.in6_u.u6_addr32);
	addr_from_v6(&p->t.dst, ip.daddr.in6_u.u6_addr32);
	if (addr_is_v4(&p->t.src) || addr_is_v4(&p->t.dst))
		return DROP_MAPPED_ADDRESS;
	p->v4 = 0;
	p->dont_fragment = 1;
	p->ttl = ip.hop_limit;
	p->proto = ip.nexthdr;
#pragma unroll
	for (int i = 0; i < EXTENSION_HEADERS_MAX; i++) {
		p->l4 = off;
		switch (p->proto) {
		case IPPROTO_HOPOPTS:
		case IPPROTO_ROUTING:
		case IPPROTO_DSTOPTS:
			if (bpf_skb_load_bytes(skb, off, &ext, sizeof(ext)))
				return DROP_SHORT;
			p->proto = ext.next;
			off += 8 + ext.len * 8;
			break;
		case IPPROTO_FRAGMENT:
			if (bpf_skb_load_bytes(skb, off, &frag, sizeof(frag)))
				return DROP_SHORT;
			p->proto = frag.next;
			p->l4 = off + sizeof(frag);
			return parse_fragment(skb, s, frag.id, !(frag.offset & bpf_htons(0xfff8)));
		default:
			return parse_l4(skb, p);
		}
	}
	return DROP_EXTENSION_HEADERS;
}

/* An ICMP message that is about another packet, rather than one of its own? */
static __always_inline bool icmp_is_error(struct __sk_buff *skb, const struct pkt *p)
{
	__u8 type;

	if (p->proto != (p->v4 ? IPPROTO_ICMP : IPPROTO_ICMPV6) || p->fragment || bpf_skb_load_bytes(skb, p->l4, &type, 1))
		return false;
	if (p->v4)
		return type == ICMP_UNREACHABLE || type == ICMP_TIME_EXCEEDED || type == ICMP_PARAMETER_PROBLEM;
	return type >= ICMP6_UNREACHABLE && type <= ICMP6_PARAMETER_PROBLEM;
}

/* Neighbour discovery, router discovery and multicast listener messages stay on the link. */
static __always_inline bool icmp_is_link_local(struct __sk_buff *skb, const struct pkt *p)
{
	__u8 type;

	return !p->v4 && p->proto == IPPROTO_ICMPV6 && !bpf_skb_load_bytes(skb, p->l4, &type, 1) &&
	       ((type >= ICMP6_LISTENER_QUERY && type <= ICMP6_REDIRECT) || type == ICMP6_LISTENER_REPORT2);
}

#endif
