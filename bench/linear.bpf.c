/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* What a verdict costs that asks one rule after the other, as others do: a look into the rule's set of addresses
 * for each. Layer: bench. */
#include <linux/bpf.h>
#include <linux/types.h>
#include <linux/pkt_cls.h>
#include <stdbool.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_endian.h>

#define RULES_MAX 1000

struct linear_rule {
	__u32 set;
	__u16 from, to; /* ports, host order */
};

struct member {
	__u32 set;
	__u8 addr[16];
};

/* written by the benchmark */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, RULES_MAX);
	__type(key, __u32);
	__type(value, struct linear_rule);
} bench_rules SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 65536);
	__type(key, struct member);
	__type(value, __u32);
} bench_members SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} bench_count SEC(".maps");

struct question {
	struct member m;
	__u32 port;
};

/* written and read within one packet's run */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct question);
} bench_question SEC(".maps");

/* Not static: the verifier looks at it once, not a thousand times. */
__noinline int rule_holds(__u32 at)
{
	__u32 zero = 0;
	struct question *q = bpf_map_lookup_elem(&bench_question, &zero);
	struct linear_rule *rule = bpf_map_lookup_elem(&bench_rules, &at);

	if (!q || !rule || q->port < rule->from || q->port > rule->to)
		return 0;
	q->m.set = rule->set;
	return !!bpf_map_lookup_elem(&bench_members, &q->m);
}

/* Source and destination port of plain TCP and UDP. */
static __always_inline bool question_read(struct __sk_buff *skb, struct question *q)
{
	__be16 type, port;
	bool v6;

	if (bpf_skb_load_bytes(skb, 12, &type, sizeof(type)))
		return false;
	v6 = type == bpf_htons(0x86dd);
	__builtin_memset(q->m.addr, 0, 10);
	__builtin_memset(q->m.addr + 10, 0xff, 2);
	if (v6 ? bpf_skb_load_bytes(skb, 14 + 8, q->m.addr, 16) : bpf_skb_load_bytes(skb, 14 + 12, q->m.addr + 12, 4))
		return false;
	if (bpf_skb_load_bytes(skb, 14 + (v6 ? 40 : 20) + 2, &port, sizeof(port)))
		return false;
	q->port = bpf_ntohs(port);
	return true;
}

SEC("tc")
int linear(struct __sk_buff *skb)
{
	__u32 zero = 0, *count = bpf_map_lookup_elem(&bench_count, &zero);
	struct question *q = bpf_map_lookup_elem(&bench_question, &zero);

	if (!count || !q || !question_read(skb, q))
		return TC_ACT_SHOT;
	for (__u32 at = 0; at < RULES_MAX && at < *count; at++)
		if (rule_holds(at))
			return TC_ACT_OK;
	return TC_ACT_SHOT;
}

char LICENSE[] SEC("license") = "GPL";
