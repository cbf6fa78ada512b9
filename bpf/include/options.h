/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* TCP options of a SYN: window scale and MSS. Layer: slow paths. */
#ifndef NP_OPTIONS_H
#define NP_OPTIONS_H

#include "parse.h"

#define TCP_OPTION_BYTES 40	/* all there can be */
#define TCP_OPTIONS_MAX 10	/* Linux sends at most six */
#define TCP_OPTION_END 0
#define TCP_OPTION_NOP 1
#define TCP_OPTION_MSS 2
#define TCP_OPTION_WSCALE 3

/* To s->syn. Reads them all at once into s->buf: each helper call costs more than the scan. */
NP_GLOBAL int syn_options(struct __sk_buff *skb)
{
	struct scratch *s = scratch_take();
	struct syn_options *o;
	__u64 length;
	__u32 at = 0;

	if (!s)
		return 0;
	o = &s->syn;
	length = (__u64)s->p.tcp_header - sizeof(struct tcphdr);
	__builtin_memset(o, 0, sizeof(*o));
	opaque(length);
	/* what is short has gone below zero: verifiers since 7.2 lose the lower bound when it is asked for before the upper one */
	if (length > TCP_OPTION_BYTES || length < 4 ||
	    bpf_skb_load_bytes(skb, s->p.l4 + sizeof(struct tcphdr), s->buf, length))
		return 0;
	for (int i = 0; i < TCP_OPTIONS_MAX; i++) {
		__u8 *option = s->buf + (at & 63);

		if (at + 1 >= length || option[0] == TCP_OPTION_END)
			break;
		if (option[0] == TCP_OPTION_NOP) {
			at += 1;
			continue;
		}
		if (option[1] < 2 || at + option[1] > length)
			break;
		if (option[0] == TCP_OPTION_MSS) {
			o->mss_at = s->p.l4 + sizeof(struct tcphdr) + at + 2;
			o->mss = (__u16)option[2] << 8 | option[3];
		}
		if (option[0] == TCP_OPTION_WSCALE)
			o->wscale = option[2];
		at += option[1];
	}
	return 0;
}

/* Lowers the MSS a side offers to what fits the way: full-size segments of the other side then need no second thought. */
static __noinline void clamp_mss(struct __sk_buff *skb, struct scratch *s, __u32 mtu)
{
	__u32 limit = mtu - (s->p.v4 ? sizeof(struct iphdr) : sizeof(struct ipv6hdr)) - sizeof(struct tcphdr);
	const struct syn_options *o = &s->syn;
	__be16 mss, was;
	bool odd;

	syn_options(skb);
	if (!o->mss_at || o->mss <= limit)
		return;
	mss = bpf_htons(limit);
	was = bpf_htons(o->mss);
	odd = (o->mss_at ^ s->p.l4) & 1;	/* at an odd offset the value's bytes stand the other way round in the sum */
	bpf_l4_csum_replace(skb, s->p.l4 + offsetof(struct tcphdr, check), odd ? __builtin_bswap16(was) : was,
			    odd ? __builtin_bswap16(mss) : mss, 2);
	bpf_skb_store_bytes(skb, o->mss_at, &mss, 2, 0);
}

#endif
