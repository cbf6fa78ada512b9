/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* From fast to slow: a program array of one slot. Layer: tc programs. */
#ifndef NP_BASE_TAIL_CALL_H
#define NP_BASE_TAIL_CALL_H

#include "base/verdict.h"

/* Filled by libbpf at load, pinned by the agent per generation: the array empties when its last user reference goes.
 * One slow program for both directions: the verifier has to look at each. */
#define NP_TAIL(name, program)                            \
	int program(struct __sk_buff *skb);               \
	struct {                                          \
		__uint(type, BPF_MAP_TYPE_PROG_ARRAY);    \
		__uint(max_entries, 1);                   \
		__type(key, __u32);                       \
		__array(values, int(struct __sk_buff *)); \
	} name SEC(".maps") = {                           \
		.values = {[0] = (void *)&program},       \
	}

/* What an entry point answers, with the fast path's verdict and the array of its slow program. */
static __always_inline int tc_action(struct __sk_buff *skb, enum verdict verdict, void *slow)
{
	if (verdict == VERDICT_SLOW) {
		bpf_tail_call(skb, slow, 0);
		return drop_counted(DROP_PROGRAM_MISSING);
	}
	return is_dropped(verdict) ? drop_counted(drop_reason(verdict)) : (int)verdict;
}

#endif
