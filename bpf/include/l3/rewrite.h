/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* Address translation and hop limit: header edits with their checksums. Layer: tc programs. */
#ifndef NP_L3_REWRITE_H
#define NP_L3_REWRITE_H

#include "base/pkt.h"

/* TTL and protocol share a 16-bit word of the IPv4 header: one hop less subtracts 0x0100 from it. */
#define TTL_WORD_DIFF bpf_htons(0xfeff) /* one's complement of 0x0100 */

static __always_inline enum drop rewrite_v4(struct __sk_buff *skb, const struct pkt *p, const struct ct_tuple *out,
					    __u64 diff)
{
	void *data = (void *)(long)skb->data, *data_end = (void *)(long)skb->data_end;
	struct iphdr *ip = data + ETH_HLEN;

	if ((void *)(ip + 1) > data_end)
		return DROP_REWRITE;
	ip->saddr = out->src.w[3];
	ip->daddr = out->dst.w[3];
	if (p->ttl != ip->ttl) {
		ip->ttl = p->ttl;
		diff += TTL_WORD_DIFF;
	}
	ip->check = ~sum_fold16((__u64)(__u16)~ip->check + diff);
	return DROP_NONE;
}

static __always_inline enum drop rewrite_v6(struct __sk_buff *skb, const struct pkt *p, const struct ct_tuple *out,
					    __u64 diff)
{
	void *data = (void *)(long)skb->data, *data_end = (void *)(long)skb->data_end;
	struct ipv6hdr *ip = data + ETH_HLEN;

	if ((void *)(ip + 1) > data_end)
		return DROP_REWRITE;
	addr_to_v6(ip->saddr.in6_u.u6_addr32, &out->src);
	addr_to_v6(ip->daddr.in6_u.u6_addr32, &out->dst);
	if (p->ttl != ip->hop_limit) {
		/* next header and hop limit share a word */
		diff += (__u16)~bpf_htons((ip->nexthdr << 8) | ip->hop_limit);
		diff += bpf_htons((ip->nexthdr << 8) | p->ttl);
		ip->hop_limit = p->ttl;
	}
	/* IPv6 has no header checksum that would cancel these edits in a device's full-packet checksum
	 * (CHECKSUM_COMPLETE); on other packets this does nothing. The L4 replacement below takes the pseudo
	 * header's part off again. */
	bpf_csum_update(skb, sum_fold32(diff));
	return DROP_NONE;
}

/* An echo has its id instead of ports. ICMPv6's checksum covers the addresses as well. */
static __noinline enum drop rewrite_echo(struct __sk_buff *skb, const struct pkt *p, const struct ct_tuple *out,
					 __u64 diff)
{
	__u32 csum = p->l4 + offsetof(struct icmp, checksum);

	if ((!p->v4 && bpf_l4_csum_replace(skb, csum, 0, sum_fold32(diff), BPF_F_PSEUDO_HDR)) ||
	    bpf_l4_csum_replace(skb, csum, p->t.sport, out->sport, 2) ||
	    bpf_skb_store_bytes(skb, p->l4 + offsetof(struct icmp, id), &out->sport, 2, 0))
		return DROP_REWRITE;
	return DROP_NONE;
}

/* What a checksum becomes that covers the difference. */
static __always_inline __u16 checksum_whole(__u16 was, __u64 diff)
{
	return ~sum_fold16((__u64)(__u16)~was + diff);
}

static __always_inline __u16 *checksum_at(struct __sk_buff *skb, const struct pkt *p)
{
	__u32 at = p->l4 + (p->proto == IPPROTO_TCP ? offsetof(struct tcphdr, check) : offsetof(struct udphdr, check));
	__u16 *check = (void *)(long)skb->data + (at & 0x3fff);

	return (void *)(check + 1) > (void *)(long)skb->data_end ? 0 : check;
}

/* One call instead of two: a checksum that is left to the device covers the pseudo header only, and how the helper
 * takes the addresses in tells which kind it is. Then the ports are ours to add, or not to. */
static __always_inline enum drop rewrite_checksum(struct __sk_buff *skb, const struct pkt *p, __u64 addrs, __u32 ports)
{
	const __u32 udp = p->proto == IPPROTO_UDP ? BPF_F_MARK_MANGLED_0 : 0, offset = pkt_csum_offset(p);
	__u16 *check = checksum_at(skb, p), was, now, whole, part;

	if (!check)
		return DROP_REWRITE;
	was = *check;
	if (bpf_l4_csum_replace(skb, offset, 0, sum_fold32(addrs), BPF_F_PSEUDO_HDR | udp))
		return DROP_REWRITE;
	check = checksum_at(skb, p);
	if (!check)
		return DROP_REWRITE;
	now = *check;
	if (udp && !was)
		return DROP_NONE; /* it has none */
	whole = checksum_whole(was, sum_fold32(addrs));
	if (udp && !whole)
		whole = 0xffff;
	part = sum_fold16((__u64)was + sum_fold32(addrs));
	if (now == part && now != whole)
		return DROP_NONE;
	if (now == whole && now != part) {
		now = checksum_whole(now, ports);
		*check = udp && !now ? 0xffff : now;
		return DROP_NONE;
	}
	return bpf_l4_csum_replace(skb, offset, 0, ports, udp) ? DROP_REWRITE : DROP_NONE;
}

/* Addresses and ports of `out`, hop limit of `p` (the caller lowers it); checksums follow. `echo`: it may be one. */
static __always_inline enum drop rewrite(struct __sk_buff *skb, const struct pkt *p, const struct ct_tuple *out,
					 const bool echo)
{
	__u64 diff = addr_diff(&p->t.src, &out->src, p->v4) + addr_diff(&p->t.dst, &out->dst, p->v4);
	__u32 ports = sum_fold32((__u64)(__u16)~p->t.sport + out->sport + (__u16)~p->t.dport + out->dport);
	enum drop why = p->v4 ? rewrite_v4(skb, p, out, diff) : rewrite_v6(skb, p, out, diff);
	void *data, *data_end;
	__be16 *port;

	if (why || p->fragment)
		return why; /* a later fragment ends here: ports and checksum are in the first */
	if (echo && (p->proto == IPPROTO_ICMP || p->proto == IPPROTO_ICMPV6))
		return rewrite_echo(skb, p, out, diff);
	data = (void *)(long)skb->data;
	data_end = (void *)(long)skb->data_end;
	port = data + (p->l4 & 0x3fff);
	if ((void *)(port + 2) > data_end)
		return DROP_REWRITE;
	port[0] = out->sport;
	port[1] = out->dport;
	return rewrite_checksum(skb, p, diff, ports);
}

/* One hop less, nothing else. */
static __always_inline enum drop rewrite_ttl(struct __sk_buff *skb, const struct pkt *p)
{
	return p->v4 ? rewrite_v4(skb, p, &p->t, 0) : rewrite_v6(skb, p, &p->t, 0);
}

#endif
