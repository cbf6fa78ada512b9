/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* Numbered records into a ring buffer and a perf event array, for the addon's tests. Layer: tests. */
#include <linux/bpf.h>
#include <linux/types.h>
#include <bpf/bpf_helpers.h>

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 65536);
} t_ring SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERF_EVENT_ARRAY);
	__type(key, __u32);
	__type(value, __u32);
} t_perf SEC(".maps");

struct record {
	__u32 number;
	__u32 mark;
	__u32 end;
};

static volatile __u32 ring_next, perf_next;

SEC("tc")
int to_ring(struct __sk_buff *skb)
{
	struct record record = {.number = ring_next, .mark = skb->mark, .end = 0x0a0b0c0d};

	ring_next++;
	return bpf_ringbuf_output(&t_ring, &record, sizeof(record), 0) == 0;
}

SEC("tc")
int to_perf(struct __sk_buff *skb)
{
	struct record record = {.number = perf_next, .mark = skb->mark, .end = 0x0a0b0c0d};

	perf_next++;
	return bpf_perf_event_output(skb, &t_perf, BPF_F_CURRENT_CPU, &record, sizeof(record)) == 0;
}

char _license[] SEC("license") = "GPL";
