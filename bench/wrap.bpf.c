/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* Runs before the program under test on every repeat of a test run: the same packet each time, or a new flow. Layer: bench. */
#include <linux/bpf.h>
#include <linux/types.h>
#include <linux/if_ether.h>
#include <linux/pkt_cls.h>
#include <stddef.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_endian.h>

#define HEADERS_V4 54	/* Ethernet, IPv4, TCP */
#define HEADERS_V6 74

struct wrap {
	__u32 mark;
	__u32 cb[5];
	__u32 v6;
	__u32 flows;		/* that many distinct ones by source address and port, then from the start; 0: the template's own */
	__u32 next;		/* number of the flow to come */
	__u32 length;		/* of the packet as given; what is longer has a tunnel header to be taken off */
	__u8 headers[80];
};
_Static_assert(sizeof(struct wrap) == 120, "wrap");

/* written by the benchmark before a run; `next` by the wrapper */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct wrap);
} bench_wrap SEC(".maps");

/* the program under test, or `nothing` */
struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} bench_next SEC(".maps");

/* Offsets of what tells flows apart: the last two bytes of the source address, and the source port. */
#define STEP_ADDRESS(v6) ((v6) ? ETH_HLEN + 22 : ETH_HLEN + 14)
#define STEP_PORT(v6) ((v6) ? HEADERS_V6 - 20 : HEADERS_V4 - 20)
#define PORTS_PER_ADDRESS 1000

static __always_inline void step(struct wrap *w, void *data, const bool v6)
{
	__u32 n = w->next, port = n % PORTS_PER_ADDRESS, address = n / PORTS_PER_ADDRESS;
	__be16 *addr = data + STEP_ADDRESS(v6), *sport = data + STEP_PORT(v6);

	*addr = bpf_htons(bpf_ntohs(*addr) + address);
	*sport = bpf_htons(bpf_ntohs(*sport) + port);
	w->next = n + 1 == w->flows ? 0 : n + 1;
}

static __always_inline void restore(void *to, const struct wrap *w, const int words)
{
	const __u16 *from = (const void *)w->headers;

	/* two bytes at a time by hand would be slow: the compiler makes the widest copies it may */
	__builtin_memcpy(to, from, words * 2);
}

SEC("tc")
int wrap(struct __sk_buff *skb)
{
	void *data, *data_end;
	__u32 zero = 0;
	struct wrap *w = bpf_map_lookup_elem(&bench_wrap, &zero);

	if (!w)
		return TC_ACT_SHOT;
	if (skb->len > w->length && bpf_skb_adjust_room(skb, w->length - skb->len, BPF_ADJ_ROOM_MAC, BPF_F_ADJ_ROOM_FIXED_GSO))
		return TC_ACT_SHOT;
	data = (void *)(long)skb->data;
	data_end = (void *)(long)skb->data_end;
	if (w->v6) {
		if (data + HEADERS_V6 > data_end)
			return TC_ACT_SHOT;
		restore(data, w, HEADERS_V6 / 2);
		if (w->flows)
			step(w, data, true);
	} else {
		if (data + HEADERS_V4 > data_end)
			return TC_ACT_SHOT;
		restore(data, w, HEADERS_V4 / 2);
		if (w->flows)
			step(w, data, false);
	}
	skb->mark = w->mark;
	skb->cb[0] = w->cb[0];
	skb->cb[1] = w->cb[1];
	skb->cb[2] = w->cb[2];
	skb->cb[3] = w->cb[3];
	skb->cb[4] = w->cb[4];
	bpf_tail_call(skb, &bench_next, 0);
	return TC_ACT_SHOT;
}

/* What the baseline runs. */
SEC("tc")
int nothing(struct __sk_buff *skb)
{
	return TC_ACT_OK;
}

/* The tunnel's grow alone, of `grow` bytes: with the wrapper's undo it shows what the pair costs. */
const volatile __u32 grow_bytes = 50;
const volatile __u64 grow_flags = 0;

SEC("tc")
int grow(struct __sk_buff *skb)
{
	return bpf_skb_adjust_room(skb, grow_bytes, BPF_ADJ_ROOM_MAC, grow_flags) ? TC_ACT_SHOT : TC_ACT_OK;
}

char LICENSE[] SEC("license") = "GPL";
