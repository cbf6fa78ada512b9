/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* Where events of flows go, to be read by the agent. Layer: shared by all programs that tell some. */
#ifndef NP_MAPS_EVENT_MAP_H
#define NP_MAPS_EVENT_MAP_H

#include "base/compat.h"
#include "maps/state.h"
#include "types/config.h"
#include "types/event.h"

/* One an object and generation. A ring buffer where the kernel has those (5.8), else one of each processor: the agent
 * says which before it loads. */
struct {
	__uint(type, BPF_MAP_TYPE_PERF_EVENT_ARRAY);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(__u32));
} np_events SEC(".maps");

/* 0, or why there was no room. `ctx`: of the program. */
static __always_inline long event_send(void *ctx, struct flow_event *e)
{
	return cfg.ring_buffer ? bpf_ringbuf_output(&np_events, e, sizeof(*e), 0)
			       : bpf_perf_event_output(ctx, &np_events, BPF_F_CURRENT_CPU, e, sizeof(*e));
}

#endif
