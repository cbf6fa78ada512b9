/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* Facts of the node that change while programs run. Layer: shared by tc and connect-time programs. */
#ifndef NP_MAPS_STATE_H
#define NP_MAPS_STATE_H

#include <stdbool.h>
#include "base/compat.h"
#include "maps/define.h"
#include "types/conntrack.h"

NP_ARRAY(np_state, struct node_state, 1);

/* Does anything listen? Then packets and bytes of flows are counted as well. */
static __always_inline bool accounts(void)
{
	struct node_state *state;
	__u32 zero = 0;

	state = bpf_map_lookup_elem(&np_state, &zero);
	return state && state->accounts;
}

/* The device by which packets enter the tunnel; 0: by none, the programs write its header. */
static __always_inline __u32 tunnel_device(void)
{
	struct node_state *state;
	__u32 zero = 0;

	if (FOR_FLOOR || !cfg.tunnel_checksum)
		return 0;
	state = bpf_map_lookup_elem(&np_state, &zero);
	return state ? state->tunnel_device : 0;
}

#endif
