/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* What we know of a packet, read once per program. Layer: tc programs. */
#ifndef NP_BASE_PKT_H
#define NP_BASE_PKT_H

#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/in.h>
#include <linux/tcp.h>
#include <linux/udp.h>
#include <stddef.h>
#include "maps/packets.h"
#include "base/addr.h"

/* ICMP and ICMPv6 have the same first 8 bytes. (<linux/icmp.h> drags in libc headers, which are not for this
 * target.) */
struct icmp {
	__u8 type;
	__u8 code;
	__be16 checksum;
	union {
		__be16 id;   /* echo */
		__be32 word; /* errors: MTU, IPv4 in the lower half; neighbour messages: flags */
	};
};

enum icmp_type {
	ICMP_ECHO_REPLY = 0,
	ICMP_UNREACHABLE = 3,
	ICMP_ECHO = 8,
	ICMP_TIME_EXCEEDED = 11,
	ICMP_PARAMETER_PROBLEM = 12,
	ICMP_TIMESTAMP_REPLY = 14,
	ICMP_INFORMATION_REPLY = 16,
	ICMP_MASK_REPLY = 18,
	ICMP6_UNREACHABLE = 1,
	ICMP6_TOO_BIG = 2,
	ICMP6_TIME_EXCEEDED = 3,
	ICMP6_PARAMETER_PROBLEM = 4,
	ICMP6_ECHO = 128,
	ICMP6_ECHO_REPLY = 129,
	ICMP6_LISTENER_QUERY = 130,
	ICMP6_LISTENER_DONE = 132,
	ICMP6_ROUTER_SOLICITATION = 133,
	ICMP6_ROUTER_ADVERTISEMENT = 134,
	ICMP6_SOLICITATION = 135,
	ICMP6_ADVERTISEMENT = 136,
	ICMP6_REDIRECT = 137,
	ICMP6_NODE_REPLY = 140,
	ICMP6_LISTENER_REPORT2 = 143,
};

enum icmp_code {
	ICMP_CODE_PORT = 3,
	ICMP_CODE_FRAGMENT = 4,
	ICMP6_CODE_PORT = 4,
};

_Static_assert(sizeof(struct icmp) == 8, "icmp");
_Static_assert(offsetof(struct tcphdr, source) == 0 && offsetof(struct tcphdr, dest) == 2 &&
		       offsetof(struct udphdr, source) == 0 && offsetof(struct udphdr, dest) == 2,
	       "ports come first, in the same order");

/* The IPv4 header's word of fragments. */
#define IP_DONT_FRAGMENT bpf_htons(0x4000)
#define IP_MORE bpf_htons(0x2000)
#define IP_OFFSET_MASK bpf_htons(0x1fff)

#define TCP_FIN 0x01
#define TCP_SYN 0x02
#define TCP_RST 0x04
#define TCP_ACK 0x10

enum hook {
	FROM_WORKLOAD,
	TO_WORKLOAD,
	FROM_HOST,
	TO_HOST,
};

/* Packets that enter the node's routing here; the other hooks see them leave it. */
static __always_inline bool hook_is_from(enum hook hook)
{
	return hook == FROM_WORKLOAD || hook == FROM_HOST;
}

struct pkt {
	struct ct_tuple t; /* ICMP echo: id in both ports */
	__u16 l4;          /* offset of the transport header */
	__u16 len;         /* of the IP packet; for GSO of all segments, capped */
	__u16 window;
	__u8 proto;
	__u8 v4;
	__u8 ttl;
	__u8 tcp_flags;
	union {
		__u8 tcp_header; /* its length with options */
		__u8 asks; /* ICMP: a message of its own, and no answer to another; SCTP: it begins an association */
	};
	__u8 gso; /* more than one segment: the sender keeps segments small enough */
	/* from here on slow_parse keeps what is there */
	__u8 tunnelled; /* came in the tunnel */
	__u8 origin;    /* which carried the address that the client meant */
	__u8 fragment;  /* has no ports of its own */
	__u8 dont_fragment;
	__u32 seq; /* host order */
	__u32 ack;
};

static __always_inline bool pkt_is_syn(const struct pkt *p)
{
	return (p->tcp_flags & (TCP_SYN | TCP_ACK)) == TCP_SYN;
}

static __always_inline bool pkt_is_icmp(const struct pkt *p)
{
	return p->proto == IPPROTO_ICMP || p->proto == IPPROTO_ICMPV6;
}

/* Has it ports, or an echo's id, that could be others? */
static __always_inline bool pkt_has_ports(const struct pkt *p)
{
	return (p->t.sport || p->t.dport) && (p->proto == IPPROTO_TCP || p->proto == IPPROTO_UDP || pkt_is_icmp(p));
}

/* Does it begin something, whatever its ports are? Of UDP nothing tells. */
static __always_inline bool pkt_asks(const struct pkt *p)
{
	return pkt_is_icmp(p) || p->proto == IPPROTO_SCTP ? p->asks : pkt_is_syn(p);
}

/* Does it tell nothing of who began, though its protocol has beginnings? */
static __always_inline bool pkt_goes_on(const struct pkt *p)
{
	return (p->proto == IPPROTO_TCP || p->proto == IPPROTO_SCTP) && !pkt_asks(p);
}

static __always_inline __u16 pkt_length(struct __sk_buff *skb)
{
	__u32 len = skb->len - ETH_HLEN;

	return len > 0xffff ? 0xffff : len;
}

/* Offset of the checksum that covers ports and pseudo header; 0: none. */
static __always_inline __u32 pkt_csum_offset(const struct pkt *p)
{
	switch (p->proto) {
	case IPPROTO_TCP:
		return p->l4 + offsetof(struct tcphdr, check);
	case IPPROTO_UDP:
		return p->l4 + offsetof(struct udphdr, check);
	case IPPROTO_ICMPV6:
		return p->l4 + offsetof(struct icmp, checksum);
	}
	return 0;
}

enum parse {
	PARSE_OK,
	PARSE_SLOW,  /* needs the slow path's eyes, or is damaged */
	PARSE_OTHER, /* no IP at all */
};

/* Neither options nor a fragment: the transport header follows at once. */
static __always_inline bool ipv4_is_plain(const struct iphdr *ip)
{
	return ip->ihl == 5 && !(ip->frag_off & (IP_OFFSET_MASK | IP_MORE));
}

static __always_inline void tuple_read_v4(struct ct_tuple *t, const struct iphdr *ip)
{
	addr_from_v4(&t->src, ip->saddr);
	addr_from_v4(&t->dst, ip->daddr);
}

static __always_inline void tuple_read_v6(struct ct_tuple *t, const struct ipv6hdr *ip)
{
	addr_from_v6(&t->src, ip->saddr.in6_u.u6_addr32);
	addr_from_v6(&t->dst, ip->daddr.in6_u.u6_addr32);
}

/* As numbers: the header's own bit fields are one by one. */
static __always_inline __u8 tcp_flags_of(const struct tcphdr *th)
{
	return ((const __u8 *)th)[13];
}

static __always_inline void pkt_read_tcp(struct pkt *p, const struct tcphdr *th)
{
	p->t.sport = th->source;
	p->t.dport = th->dest;
	p->tcp_flags = tcp_flags_of(th);
	p->tcp_header = (((const __u8 *)th)[12] >> 4) * 4;
	p->window = bpf_ntohs(th->window);
	p->seq = bpf_ntohl(th->seq);
	p->ack = bpf_ntohl(th->ack_seq);
}

static __always_inline void pkt_read_udp(struct pkt *p, const struct udphdr *uh)
{
	p->t.sport = uh->source;
	p->t.dport = uh->dest;
	p->tcp_flags = 0;
	p->tcp_header = 0;
	p->window = 0;
	p->seq = 0;
	p->ack = 0;
}

static __always_inline enum parse pkt_parse_l4(struct pkt *p, void *l4, void *data_end)
{
	struct tcphdr *th = l4;
	struct udphdr *uh = l4;

	if (p->proto == IPPROTO_TCP) {
		if ((void *)(th + 1) > data_end)
			return PARSE_SLOW;
		pkt_read_tcp(p, th);
		return PARSE_OK;
	}
	if (p->proto == IPPROTO_UDP) {
		if ((void *)(uh + 1) > data_end)
			return PARSE_SLOW;
		pkt_read_udp(p, uh);
		return PARSE_OK;
	}
	return PARSE_SLOW;
}

/* Brings `bytes`, or all there are, into the linear part. */
static __always_inline bool pkt_pull(struct __sk_buff *skb, __u32 bytes)
{
	return !bpf_skb_pull_data(skb, skb->len < bytes ? skb->len : bytes);
}

/* What decides whether a packet is the tunnel's: where drivers split headers from data, not even that may be in the
 * linear part. */
#define HEADERS_LEAST (ETH_HLEN + sizeof(struct ipv6hdr) + sizeof(struct udphdr))

static __always_inline void pkt_linear(struct __sk_buff *skb)
{
	void *data = (void *)(long)skb->data, *data_end = (void *)(long)skb->data_end;

	if (data + HEADERS_LEAST > data_end && data + skb->len != data_end)
		pkt_pull(skb, HEADERS_LEAST);
}

/* The plain cases: no options, no fragment, no extension header, TCP or UDP, headers in the linear part. */
static __always_inline enum parse pkt_parse_fast(struct __sk_buff *skb, struct pkt *p)
{
	void *data = (void *)(long)skb->data, *data_end = (void *)(long)skb->data_end;
	struct ethhdr *eth = data;

	p->origin = 0;
	p->tunnelled = 0;
	p->fragment = 0;
	p->dont_fragment = 1;
	p->len = pkt_length(skb);
	p->gso = skb->gso_segs > 1;
	if ((void *)(eth + 1) > data_end)
		return PARSE_SLOW;
	if (eth->h_proto == bpf_htons(ETH_P_IP)) {
		struct iphdr *ip = (void *)(eth + 1);

		if ((void *)(ip + 1) > data_end || !ipv4_is_plain(ip))
			return PARSE_SLOW;
		tuple_read_v4(&p->t, ip);
		p->v4 = 1;
		p->ttl = ip->ttl;
		p->proto = ip->protocol;
		p->dont_fragment = !!(ip->frag_off & IP_DONT_FRAGMENT);
		p->l4 = ETH_HLEN + sizeof(*ip);
		return pkt_parse_l4(p, ip + 1, data_end);
	}
	if (eth->h_proto == bpf_htons(ETH_P_IPV6)) {
		struct ipv6hdr *ip = (void *)(eth + 1);

		if ((void *)(ip + 1) > data_end)
			return PARSE_SLOW;
		tuple_read_v6(&p->t, ip);
		if (addr_is_v4(&p->t.src) || addr_is_v4(&p->t.dst))
			return PARSE_SLOW;
		p->v4 = 0;
		p->ttl = ip->hop_limit;
		p->proto = ip->nexthdr;
		p->l4 = ETH_HLEN + sizeof(*ip);
		return pkt_parse_l4(p, ip + 1, data_end);
	}
	return eth->h_proto == bpf_htons(ETH_P_ARP) ? PARSE_SLOW : PARSE_OTHER;
}

#endif
