/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* Reading what the fast path would not: options, extension headers, fragments, ICMP. Layer: slow paths. */
#ifndef NP_BASE_PARSE_H
#define NP_BASE_PARSE_H

#include "base/scratch.h"

#define EXTENSION_HEADERS_MAX 8
#define CHAIN_END 0x3000 /* longer than the packets of any network; offsets are looked at by 14 bits */

/* Numbers of headers that <linux/in.h> has not. */
enum v6_header {
	V6_MOBILITY = 135,
	V6_HIP = 139,
	V6_SHIM6 = 140,
};

/* All begin so; the Fragment header has its offset and id where others have their own. */
struct v6_extension {
	__u8 next;
	__u8 len;      /* in 8 bytes, without the first 8; AH's in 4 bytes, without the first 8 */
	__be16 offset; /* upper 13 bits; lowest: more follow */
	__be32 id;
};

/* Is the type an answer to another message? Other types are messages of their own, also from a peer that may answer. */
static __always_inline bool icmp_answers(__u8 type, bool v4)
{
	if (v4)
		return type == ICMP_ECHO_REPLY || type == ICMP_TIMESTAMP_REPLY || type == ICMP_INFORMATION_REPLY ||
		       type == ICMP_MASK_REPLY;
	return type == ICMP6_ECHO_REPLY || type == ICMP6_NODE_REPLY;
}

/* Ports of an echo are its id; other ICMP has none and is not a flow of its own. */
static __always_inline enum drop parse_icmp(struct __sk_buff *skb, struct pkt *p)
{
	struct icmp icmp;

	if (bpf_skb_load_bytes(skb, p->l4, &icmp, sizeof(icmp)))
		return DROP_SHORT;
	p->tcp_flags = 0;
	p->asks = !icmp_answers(icmp.type, p->v4);
	p->t.sport = 0;
	p->t.dport = 0;
	if (p->v4 ? icmp.type == ICMP_ECHO || icmp.type == ICMP_ECHO_REPLY
		  : icmp.type == ICMP6_ECHO || icmp.type == ICMP6_ECHO_REPLY) {
		p->t.sport = icmp.id;
		p->t.dport = icmp.id;
	}
	return DROP_NONE;
}

static __noinline enum drop parse_l4(struct __sk_buff *skb, struct pkt *p)
{
	struct {
		__be16 source, dest;
		__be32 tag;
	} sctp;
	struct tcphdr th;
	struct udphdr uh;

	if (p->l4 > skb->len)
		return DROP_SHORT; /* its headers say that they are longer than all of it */
	switch (p->proto) {
	case IPPROTO_TCP:
		if (bpf_skb_load_bytes(skb, p->l4, &th, sizeof(th)))
			return DROP_SHORT;
		pkt_read_tcp(p, &th);
		return DROP_NONE;
	case IPPROTO_UDP:
		if (bpf_skb_load_bytes(skb, p->l4, &uh, sizeof(uh)))
			return DROP_SHORT;
		pkt_read_udp(p, &uh);
		return DROP_NONE;
	case IPPROTO_SCTP:
		/* for rules, and to tell associations apart: they are not translated */
		if (bpf_skb_load_bytes(skb, p->l4, &sctp, sizeof(sctp)))
			return DROP_SHORT;
		p->t.sport = sctp.source;
		p->t.dport = sctp.dest;
		p->asks = !sctp.tag; /* a sender knows the tag only after a packet from the other end */
		p->tcp_flags = 0;
		return DROP_NONE;
	case IPPROTO_DCCP:
	case IPPROTO_UDPLITE:
		/* no rule asks for their ports, but an answer comes from the port that was asked */
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

/* Bytes of the transport header that are read. */
static __always_inline __u32 l4_length(__u8 proto)
{
	switch (proto) {
	case IPPROTO_TCP:
		return sizeof(struct tcphdr);
	case IPPROTO_UDP:
	case IPPROTO_ICMP:
	case IPPROTO_ICMPV6:
	case IPPROTO_SCTP:
	case V6_MOBILITY:
	case V6_HIP:
	case V6_SHIM6:
		return 8;
	case IPPROTO_DCCP:
	case IPPROTO_UDPLITE:
		return 4;
	}
	return 0;
}

/* A later fragment has no ports: they were learned from the first, which must have come before, with all headers in
 * it. `start`: offset of what is cut; `at`: where in it the fragment belongs; `end`: of the packet, by what it says
 * itself. Reads walk.frag; writes p, walk.heads, first_fragment. */
static __noinline enum drop parse_fragment(struct __sk_buff *skb, struct scratch *s, __u32 start, __u32 at, __u32 end)
{
	struct pkt *p = &s->p;
	struct frag *known;
	__u32 heads;

	if (!at) {
		heads = p->l4 + l4_length(p->proto);
		if (heads > end)
			return DROP_SHORT; /* what follows pads the frame */
		s->walk.heads = heads - start;
		s->first_fragment = 1;
		return parse_l4(skb, p);
	}
	if (at == 8 && p->proto == IPPROTO_TCP)
		return DROP_MALFORMED; /* no first fragment ends there: this one would write over its headers */
	if (at + end > 0xffff + ETH_HLEN)
		return DROP_MALFORMED; /* longer than a datagram can be */
	known = bpf_map_lookup_elem(&np_frags, &s->walk.frag);
	if (!known)
		return DROP_FRAGMENT_UNKNOWN;
	if (at < known->heads)
		return DROP_MALFORMED;
	if (!p->v4)
		p->proto = known->proto;
	p->t.sport = known->sport;
	p->t.dport = known->dport;
	p->tcp_flags = 0;
	p->fragment = 1;
	return DROP_NONE;
}

/* Writes walk.frag. */
static __always_inline void fragment_key(struct scratch *s, __be32 id, __u8 proto)
{
	struct frag_key *k = &s->walk.frag;

	__builtin_memset(k, 0, sizeof(*k));
	k->src = s->p.t.src;
	k->dst = s->p.t.dst;
	k->id = id;
	k->proto = proto;
}

/* Once it is clear that the sender may speak for this address. Reads walk.frag, walk.heads. */
static __noinline void fragment_note(struct scratch *s)
{
	struct frag f = {};

	f.sport = s->p.t.sport;
	f.dport = s->p.t.dport;
	f.heads = s->walk.heads;
	f.proto = s->p.proto;
	bpf_map_update_elem(&np_frags, &s->walk.frag, &f, BPF_ANY);
}

/* Writes p, walk, first_fragment. */
static __noinline enum drop parse_v4(struct __sk_buff *skb, struct scratch *s)
{
	struct pkt *p = &s->p;
	struct iphdr ip;

	if (bpf_skb_load_bytes(skb, ETH_HLEN, &ip, sizeof(ip)))
		return DROP_SHORT;
	if (ip.version != 4 || ip.ihl < 5)
		return DROP_MALFORMED;
	tuple_read_v4(&p->t, &ip);
	p->v4 = 1;
	p->ttl = ip.ttl;
	p->proto = ip.protocol;
	p->dont_fragment = !!(ip.frag_off & IP_DONT_FRAGMENT);
	p->l4 = ETH_HLEN + ip.ihl * 4;
	if (!(ip.frag_off & (IP_OFFSET_MASK | IP_MORE)))
		return parse_l4(skb, p);
	fragment_key(s, ip.id, ip.protocol);
	return parse_fragment(skb, s, p->l4, bpf_ntohs(ip.frag_off & IP_OFFSET_MASK) * 8,
			      ETH_HLEN + bpf_ntohs(ip.tot_len));
}

/* A protocol of its own where nothing follows it. */
static __always_inline bool is_last_header(__u32 proto, __u8 next)
{
	return next == IPPROTO_NONE && (proto == V6_MOBILITY || proto == V6_HIP || proto == V6_SHIM6);
}

static __always_inline bool is_extension(__u32 proto)
{
	return proto == IPPROTO_HOPOPTS || proto == IPPROTO_ROUTING || proto == IPPROTO_FRAGMENT ||
	       proto == IPPROTO_DSTOPTS || proto == IPPROTO_AH || proto == V6_MOBILITY || proto == V6_HIP ||
	       proto == V6_SHIM6;
}

/* Follows the extension headers of an IPv6 packet from the first, `proto` at `off`, to s->walk.chain: a rule by ports
 * has to know where they are. Returns an enum drop. Writes walk.chain. */
NP_GLOBAL int chain_read(struct __sk_buff *skb, __u32 off, __u32 proto)
{
	struct scratch *s = scratch_take();
	struct v6_extension ext;
	struct chain *c;

	if (!s)
		return DROP_PROGRAM_MISSING;
	c = &s->walk.chain;
	__builtin_memset(c, 0, sizeof(*c));
#pragma unroll
	for (int i = 0; i <= EXTENSION_HEADERS_MAX; i++) {
		c->l4 = off;
		c->proto = proto;
		if (!is_extension(proto) || (c->start && c->offset & bpf_htons(0xfff8)))
			return DROP_NONE; /* of a later fragment the rest is in the first */
		if (bpf_skb_load_bytes(skb, off, &ext, sizeof(ext)))
			return DROP_SHORT;
		if (is_last_header(proto, ext.next))
			return DROP_NONE;
		if (proto == IPPROTO_FRAGMENT) {
			if (c->start)
				return DROP_MALFORMED; /* nor does the kernel take two */
			c->start = off + sizeof(ext);
			c->offset = ext.offset;
			c->id = ext.id;
			ext.len = 0;
		}
		off += 8 + ext.len * (proto == IPPROTO_AH ? 4 : 8);
		proto = ext.next;
		if (off > CHAIN_END)
			break;
	}
	return DROP_EXTENSION_HEADERS;
}

/* Writes p, walk, first_fragment. */
static __noinline enum drop parse_v6(struct __sk_buff *skb, struct scratch *s)
{
	struct chain *c = &s->walk.chain;
	struct pkt *p = &s->p;
	struct ipv6hdr ip;
	int why;

	if (bpf_skb_load_bytes(skb, ETH_HLEN, &ip, sizeof(ip)))
		return DROP_SHORT;
	tuple_read_v6(&p->t, &ip);
	if (addr_is_v4(&p->t.src) || addr_is_v4(&p->t.dst))
		return DROP_MAPPED_ADDRESS;
	p->v4 = 0;
	p->dont_fragment = 1;
	p->ttl = ip.hop_limit;
	why = chain_read(skb, ETH_HLEN + sizeof(ip), ip.nexthdr);
	if (why)
		return why;
	p->proto = c->proto;
	p->l4 = c->l4;
	if (!c->start || !(c->offset & bpf_htons(0xfff9)))
		return parse_l4(skb, p); /* whole, though it may say that it is a fragment */
	/* what follows the Fragment header is each fragment's own word: the first's counts */
	fragment_key(s, c->id, IPPROTO_FRAGMENT);
	return parse_fragment(skb, s, c->start, bpf_ntohs(c->offset & bpf_htons(0xfff8)),
			      ETH_HLEN + sizeof(ip) + bpf_ntohs(ip.payload_len));
}

/* An ICMP message that is about another packet, rather than one of its own? */
static __always_inline bool icmp_is_error(struct __sk_buff *skb, const struct pkt *p)
{
	__u8 type;

	if (p->proto != (p->v4 ? IPPROTO_ICMP : IPPROTO_ICMPV6) || p->fragment ||
	    bpf_skb_load_bytes(skb, p->l4, &type, 1))
		return false;
	if (p->v4)
		return type == ICMP_UNREACHABLE || type == ICMP_TIME_EXCEEDED || type == ICMP_PARAMETER_PROBLEM;
	return type >= ICMP6_UNREACHABLE && type <= ICMP6_PARAMETER_PROBLEM;
}

#endif
