/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* Runs before the program under test on every repeat of a test run: the same packet each time, or a new flow.
 * Layer: bench. */
#include <linux/bpf.h>
#include <linux/types.h>
#include <linux/if_ether.h>
#include <linux/pkt_cls.h>
#include <stdbool.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_endian.h>

#define HEADERS_V4 54 /* Ethernet, IPv4, TCP */
#define HEADERS_V6 74

/* of a mark that counts: base/mark.h */
#define MARK_INDEX 0x6e70

struct wrap {
	__u32 mark;
	__u32 cb[5];
	__u32 v6;
	__u32 flows;  /* that many, by source address and port, then from the start; 0: the template's own */
	__u32 next;   /* number of the flow to come */
	__u32 length; /* of the packet as given; what is longer has a tunnel header to be taken off */
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

#define PORTS_PER_ADDRESS 1000

/* Copies as the fields lie, not as memcpy() would: a program that reads a field right after it was stored in
 * pieces, or over the seam of two stores, waits for both to reach the cache, which no real packet makes it do. */
#define COPY(type, to, w, at) (*(type *)((to) + (at)) = *(const type *)((w)->headers + (at)))

static __always_inline void restore_ethernet(void *to, const struct wrap *w)
{
	COPY(__u64, to, w, 0);
	COPY(__u32, to, w, 8);
	COPY(__u16, to, w, 12);
}

/* `step_address` and `step_port`: what is added to the source address' last word and the source port */
static __always_inline void restore_v4(void *to, const struct wrap *w, __u32 step_address, __u32 step_port)
{
	__be32 source = *(const __be32 *)(w->headers + 26), ports = *(const __be32 *)(w->headers + 34);

	restore_ethernet(to, w);
	COPY(__u64, to, w, 14); /* version .. fragment offset */
	COPY(__u32, to, w, 22); /* ttl, protocol, checksum */
	*(__be32 *)(to + 26) = bpf_htonl(bpf_ntohl(source) + step_address);
	COPY(__u32, to, w, 30);
	*(__be32 *)(to + 34) = bpf_htonl(bpf_ntohl(ports) + (step_port << 16));
	COPY(__u32, to, w, 38); /* sequence number */
	COPY(__u32, to, w, 42);
	COPY(__u64, to, w, 46); /* flags .. urgent pointer */
}

static __always_inline void restore_v6(void *to, const struct wrap *w, __u32 step_address, __u32 step_port)
{
	__be32 source = *(const __be32 *)(w->headers + 34), ports = *(const __be32 *)(w->headers + 54);

	restore_ethernet(to, w);
	COPY(__u64, to, w, 14); /* version .. hop limit */
	COPY(__u64, to, w, 22);
	COPY(__u32, to, w, 30);
	*(__be32 *)(to + 34) = bpf_htonl(bpf_ntohl(source) + step_address);
	COPY(__u64, to, w, 38);
	COPY(__u64, to, w, 46);
	*(__be32 *)(to + 54) = bpf_htonl(bpf_ntohl(ports) + (step_port << 16));
	COPY(__u32, to, w, 58);
	COPY(__u32, to, w, 62);
	COPY(__u64, to, w, 66);
}

static __always_inline bool change_room(struct __sk_buff *skb, __s32 bytes)
{
	return !bpf_skb_adjust_room(skb, bytes, BPF_ADJ_ROOM_MAC, BPF_F_ADJ_ROOM_FIXED_GSO);
}

SEC("tc")
int wrap(struct __sk_buff *skb)
{
	void *data, *data_end;
	__u32 zero = 0, address = 0, port = 0, n;
	struct wrap *w = bpf_map_lookup_elem(&bench_wrap, &zero);

	if (!w)
		return TC_ACT_SHOT;
	if (skb->len > w->length && !change_room(skb, w->length - skb->len))
		return TC_ACT_SHOT;
	if (w->flows) {
		n = w->next;
		w->next = n + 1 == w->flows ? 0 : n + 1;
		address = n / PORTS_PER_ADDRESS;
		port = n % PORTS_PER_ADDRESS;
	}
	data = (void *)(long)skb->data;
	data_end = (void *)(long)skb->data_end;
	if (w->v6) {
		if (data + HEADERS_V6 > data_end)
			return TC_ACT_SHOT;
		restore_v6(data, w, address, port);
	} else {
		if (data + HEADERS_V4 > data_end)
			return TC_ACT_SHOT;
		restore_v4(data, w, address, port);
	}
	skb->mark = w->mark;
	skb->tc_index = w->mark ? MARK_INDEX : 0;
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
	(void)skb;
	return TC_ACT_OK;
}

/* the same for XDP programs, which have no mark and grow no packets */
struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} bench_next_xdp SEC(".maps");

SEC("xdp")
int wrap_xdp(struct xdp_md *ctx)
{
	void *data = (void *)(long)ctx->data, *data_end = (void *)(long)ctx->data_end;
	__u32 zero = 0;
	struct wrap *w = bpf_map_lookup_elem(&bench_wrap, &zero);

	if (!w)
		return XDP_ABORTED;
	if (w->v6) {
		if (data + HEADERS_V6 > data_end)
			return XDP_ABORTED;
		restore_v6(data, w, 0, 0);
	} else {
		if (data + HEADERS_V4 > data_end)
			return XDP_ABORTED;
		restore_v4(data, w, 0, 0);
	}
	bpf_tail_call(ctx, &bench_next_xdp, 0);
	return XDP_ABORTED;
}

SEC("xdp")
int nothing_xdp(struct xdp_md *ctx)
{
	(void)ctx;
	return XDP_PASS;
}

struct spent {
	__u64 clock; /* ns between two readings of the clock */
	__u64 grow;  /* with one reading of the clock in it */
	__u64 undo;  /* the same */
	__u64 runs;
};

/* written by `pair`, read by the benchmark */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct spent);
} bench_spent SEC(".maps");

const volatile __u32 grow_bytes = 50; /* set before load */

/* Room for a tunnel header made and taken away again: what the undo in the wrapper costs. */
SEC("tc")
int pair(struct __sk_buff *skb)
{
	return change_room(skb, grow_bytes) && change_room(skb, -(__s32)grow_bytes) ? TC_ACT_OK : TC_ACT_SHOT;
}

/* How the pair's cost splits into its halves. */
SEC("tc")
int pair_timed(struct __sk_buff *skb)
{
	__u64 start = bpf_ktime_get_ns(), clock = bpf_ktime_get_ns(), grown, undone;
	__u32 zero = 0;
	struct spent *s = bpf_map_lookup_elem(&bench_spent, &zero);

	if (!s)
		return TC_ACT_SHOT;
	s->clock += clock - start;
	start = bpf_ktime_get_ns();
	if (!change_room(skb, grow_bytes))
		return TC_ACT_SHOT;
	grown = bpf_ktime_get_ns();
	if (!change_room(skb, -(__s32)grow_bytes))
		return TC_ACT_SHOT;
	undone = bpf_ktime_get_ns();
	s->grow += grown - start;
	s->undo += undone - grown;
	s->runs += 1;
	return TC_ACT_OK;
}

char LICENSE[] SEC("license") = "GPL";
