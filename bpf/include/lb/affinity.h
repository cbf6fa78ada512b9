/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* Session affinity: the backend that a client's last flow went to. Layer: shared by tc slow paths and connect-time
 * programs. */
#ifndef NP_LB_AFFINITY_H
#define NP_LB_AFFINITY_H

#include "lb/service.h"

/* The client's last backend, if that was not too long ago and new flows may still go there. */
static __always_inline struct live *affinity_find(const struct affinity_key *k, __u32 seconds, __u64 now)
{
	struct affinity *a = bpf_map_lookup_elem(&np_affinity, k);
	struct live *live;

	if (!a || (now > a->seen && now - a->seen > seconds * SECOND_NS))
		return 0;
	live = backend_live(k->list, &a->addr, a->port);
	if (!live || !(live->flags & LIVE_CHOSEN))
		return 0;
	a->seen = now;
	return live;
}

static __always_inline void affinity_put(const struct affinity_key *k, const struct backend *be, __u64 now)
{
	struct affinity a = {};

	a.seen = now;
	a.addr = be->addr;
	a.port = be->port;
	bpf_map_update_elem(&np_affinity, k, &a, BPF_ANY);
}

#endif
