/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* Drops and other events, counted. Layer: shared by all programs. */
#ifndef NP_MAPS_COUNTERS_H
#define NP_MAPS_COUNTERS_H

#include "maps/define.h"
#include "types/reason.h"

/* one slot a drop reason, then one a counter; written by all programs, read by the agent */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, DROP_MAX + COUNT_MAX);
	__type(key, __u32);
	__type(value, __u64);
} np_counters SEC(".maps");

/* Nothing that counts the same interrupts programs of packets. */
static __always_inline void count_slot(__u32 slot)
{
	__u64 *n = bpf_map_lookup_elem(&np_counters, &slot);

	if (n)
		*n += 1;
}

/* Processes that connect on one CPU interrupt one another. */
static __always_inline void count_slot_of_socket(__u32 slot)
{
	__u64 *n = bpf_map_lookup_elem(&np_counters, &slot);

	if (n)
		__sync_fetch_and_add(n, 1);
}

#endif
