/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* TCP options of a SYN: window scale and MSS. Layer: slow paths. */
#ifndef NP_L3_TCP_OPTIONS_H
#define NP_L3_TCP_OPTIONS_H

#include "base/parse.h"

#define TCP_OPTION_BYTES 40 /* all there can be */
#define TCP_OPTIONS_MAX 10  /* Linux sends at most six */
#define TCP_OPTION_END 0
#define TCP_OPTION_NOP 1
#define TCP_OPTION_MSS 2
#define TCP_OPTION_WSCALE 3
#define TCP_OPTION_SACK 4
#define TCP_OPTION_TIMESTAMP 8

_Static_assert(TCP_OPTION_BYTES < 64 && 64 + 2 < sizeof(((struct answer *)0)->buf), "options are read by 6 bits");

#define SYN_OPTIONS_SHORT 8 /* MSS, window scale */
#define SYN_OPTIONS_SACK 12 /* MSS, SACK, window scale */
#define SYN_OPTIONS_FULL 20 /* MSS, SACK, timestamps, window scale */

/* What begins and ends a SYN's options as Linux lays them out. */
struct syn_start {
	__u8 mss_kind, mss_length, mss[2];
	__u8 next_kind, next_length, then_kind, then_length;
};
struct syn_end {
	__u8 pad, wscale_kind, wscale_length, wscale;
};

/* Reads those where they are. False: they are laid out in another way. */
static __always_inline bool syn_usual(struct __sk_buff *skb, const struct scratch *s, __u64 length,
				      struct syn_options *to)
{
	void *data = (void *)(long)skb->data, *data_end = (void *)(long)skb->data_end;
	const struct syn_start *start = data + (s->p.l4 & 0x3fff) + sizeof(struct tcphdr);
	__u64 last = length - sizeof(struct syn_end);
	const struct syn_end *end;
	bool usual;

	if ((void *)(start + 1) > data_end || start->mss_kind != TCP_OPTION_MSS || start->mss_length != 4)
		return false;
	if (length == SYN_OPTIONS_FULL)
		usual = start->next_kind == TCP_OPTION_SACK && start->next_length == 2 &&
			start->then_kind == TCP_OPTION_TIMESTAMP && start->then_length == 10;
	else if (length == SYN_OPTIONS_SACK)
		usual = start->next_kind == TCP_OPTION_NOP && start->next_length == TCP_OPTION_NOP &&
			start->then_kind == TCP_OPTION_SACK && start->then_length == 2;
	else
		usual = length == SYN_OPTIONS_SHORT;
	if (!usual)
		return false;
	opaque(last);
	end = (void *)start + (last & 31);
	if ((void *)(end + 1) > data_end || end->pad != TCP_OPTION_NOP || end->wscale_kind != TCP_OPTION_WSCALE ||
	    end->wscale_length != 3)
		return false;
	to->mss_at = s->p.l4 + sizeof(struct tcphdr) + offsetof(struct syn_start, mss);
	to->mss = (__u16)start->mss[0] << 8 | start->mss[1];
	to->wscale = end->wscale;
	return true;
}

/* To s->syn. Others than the usual are read at once into s->answer.buf: each helper call costs more than the scan. */
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
	if (HAS_SYN_IN_PLACE && syn_usual(skb, s, length, o))
		return 0;
	opaque(length);
	/* what is short has gone below zero: verifiers since 7.2 lose the lower bound when it is asked for before
	 * the upper one */
	if (length > TCP_OPTION_BYTES || length < 4 ||
	    bpf_skb_load_bytes(skb, s->p.l4 + sizeof(struct tcphdr), s->answer.buf, length))
		return 0;
	for (int i = 0; i < TCP_OPTIONS_MAX; i++) {
		__u8 *option = s->answer.buf + (at & 63);

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

/* Lowers the MSS a side offers to what fits the way: full-size segments of the other side then need no second
 * thought. Writes syn. */
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
	odd = (o->mss_at ^ s->p.l4) & 1; /* at an odd offset the value's bytes stand the other way round in the sum */
	bpf_l4_csum_replace(skb, s->p.l4 + offsetof(struct tcphdr, check), odd ? __builtin_bswap16(was) : was,
			    odd ? __builtin_bswap16(mss) : mss, 2);
	bpf_skb_store_bytes(skb, o->mss_at, &mss, 2, 0);
}

#endif
