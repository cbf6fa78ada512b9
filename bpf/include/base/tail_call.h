/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* Which program is run by which: the slow one by those at the hooks, these by what stands by. Layer: tc programs. */
#ifndef NP_BASE_TAIL_CALL_H
#define NP_BASE_TAIL_CALL_H

#include "base/pkt.h"
#include "base/standby.h"
#include "base/verdict.h"

enum tail_slot {
	TAIL_SLOW,
	TAIL_FROM,
	TAIL_TO,
	TAIL_SLOTS
};

/* Filled by libbpf at load, pinned by the agent per generation: the array empties when its last user reference goes.
 * One slow program for both directions: the verifier has to look at each. */
#define NP_TAIL(name, slow, from, to)                        \
	int slow(struct __sk_buff *skb);                     \
	int from(struct __sk_buff *skb);                     \
	int to(struct __sk_buff *skb);                       \
	struct {                                             \
		__uint(type, BPF_MAP_TYPE_PROG_ARRAY);       \
		__uint(max_entries, TAIL_SLOTS);             \
		__type(key, __u32);                          \
		__array(values, int(struct __sk_buff *));    \
	} name SEC(".maps") = {                              \
		.values =                                    \
			{                                    \
				[TAIL_SLOW] = (void *)&slow, \
				[TAIL_FROM] = (void *)&from, \
				[TAIL_TO] = (void *)&to,     \
			},                                   \
	}

/* What an entry point answers, with the fast path's verdict and the array of its slow program. */
static __always_inline int tc_action(struct __sk_buff *skb, enum verdict verdict, const enum hook hook, void *tails)
{
	if (verdict == VERDICT_SLOW) {
		bpf_tail_call(skb, tails, TAIL_SLOW);
		return drop_counted(DROP_PROGRAM_MISSING);
	}
	return is_dropped(verdict) ? drop_counted(drop_reason(verdict)) : passed_on(skb, verdict, hook);
}

/* What stands by does: nothing, or what the program that should be before it does. */
static __always_inline int stand_by(struct __sk_buff *skb, const enum hook hook, void *tails)
{
	if (was_passed_on(skb, hook))
		return VERDICT_PASS;
	bpf_tail_call(skb, tails, hook_is_from(hook) ? TAIL_FROM : TAIL_TO);
	return VERDICT_PASS; /* of programs that are being retired: others are at the hook */
}

#endif
