/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* Which program is run by which: the slow one by those at the hooks, these by what stands by. Layer: tc programs. */
#ifndef NP_BASE_TAIL_CALL_H
#define NP_BASE_TAIL_CALL_H

#include "base/pkt.h"
#include "base/standby.h"
#include "base/verdict.h"

/* Those below it are of the hooks. */
#define TAIL_SLOW (TO_HOST + 1)

int from_workload(struct __sk_buff *skb);
int to_workload(struct __sk_buff *skb);
int from_host(struct __sk_buff *skb);
int to_host(struct __sk_buff *skb);
int slow(struct __sk_buff *skb);

/* Filled by libbpf at load, pinned by the agent per generation: the array empties when its last user reference goes. */
struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, TAIL_SLOW + 1);
	__type(key, __u32);
	__array(values, int(struct __sk_buff *));
} np_tail SEC(".maps") = {
	.values =
		{
			[FROM_WORKLOAD] = (void *)&from_workload,
			[TO_WORKLOAD] = (void *)&to_workload,
			[FROM_HOST] = (void *)&from_host,
			[TO_HOST] = (void *)&to_host,
			[TAIL_SLOW] = (void *)&slow,
		},
};

/* What stands by does: nothing, or what the program that should be before it does. */
static __always_inline int stand_by(struct __sk_buff *skb, const enum hook hook)
{
	if (was_passed_on(skb, hook))
		return VERDICT_PASS;
	bpf_tail_call(skb, &np_tail, hook);
	return VERDICT_PASS; /* of programs that are being retired: others are at the hook */
}

#endif
