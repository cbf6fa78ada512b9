/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* Maps, read-only data, tail calls and a missing helper, for the addon's tests. Layer: tests. */
#include <linux/bpf.h>
#include <linux/types.h>
#include <bpf/bpf_helpers.h>

struct knobs {
	__u32 answer;
	__u32 missing;
};
const volatile struct knobs knobs = {};

struct key {
	__u32 a, b;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1024);
	__type(key, struct key);
	__type(value, __u64);
} t_hash SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, 4);
	__type(key, __u32);
	__type(value, __u32);
} t_tail SEC(".maps");

/* no kernel has this helper */
static long (*bpf_missing)(void) = (void *)9999;

static __noinline int ask_missing(struct __sk_buff *skb)
{
	if (skb->priority == 7)
		return bpf_missing();
	return 1;
}

SEC("tc")
int answer(struct __sk_buff *skb)
{
	return knobs.answer + skb->mark;
}

SEC("tc")
int missing_in_subprogram(struct __sk_buff *skb)
{
	return ask_missing(skb);
}

SEC("tc")
int missing_guarded(struct __sk_buff *skb)
{
	if (knobs.missing)
		return bpf_missing();
	return 2;
}

SEC("tc")
int jump(struct __sk_buff *skb)
{
	bpf_tail_call(skb, &t_tail, 0);
	return 3;
}

SEC("tc")
int count(struct __sk_buff *skb)
{
	struct key key = {.a = 1, .b = skb->mark};
	__u64 one = 1, *value = bpf_map_lookup_elem(&t_hash, &key);

	if (value)
		__sync_fetch_and_add(value, 1);
	else
		bpf_map_update_elem(&t_hash, &key, &one, BPF_ANY);
	return 0;
}

/* reads behind the packet: refused, and the reason is the last thing in the log */
SEC("tc")
int refused(struct __sk_buff *skb)
{
	__u32 *data = (void *)(long)skb->data;

	return *data;
}

SEC("xdp")
int pass(struct xdp_md *xdp)
{
	return XDP_PASS;
}

SEC("cgroup/connect4")
int connect4(struct bpf_sock_addr *addr)
{
	return 1;
}

char _license[] SEC("license") = "GPL";
