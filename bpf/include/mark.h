/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* What one program tells a later one about a packet: skb mark and cb, touched only here. Layer: tc programs. */
#ifndef NP_MARK_H
#define NP_MARK_H

#include "compat.h"

/*
 * field            writer                     reader                   meaning
 * mark bit 0x01000000  from_*, slow paths     to_workload, to_host     decided by this node: pass without a look
 * cb[0..3], cb[4]  from_host                  from_host_slow           came in the tunnel, from this node address
 *
 * The mark does not leave the node: crossing to a pod's namespace or a wire clears it.
 */
#define NP_MARK_DECIDED 0x01000000

static __always_inline bool mark_is_decided(struct __sk_buff *skb)
{
	return skb->mark & NP_MARK_DECIDED;
}

static __always_inline void mark_set_decided(struct __sk_buff *skb)
{
	skb->mark = skb->mark | NP_MARK_DECIDED;
}

static __always_inline void cb_set_tunnel(struct __sk_buff *skb, const struct addr *from)
{
	skb->cb[0] = from->w[0];
	skb->cb[1] = from->w[1];
	skb->cb[2] = from->w[2];
	skb->cb[3] = from->w[3];
	skb->cb[4] = 1;
}

static __always_inline void cb_clear_tunnel(struct __sk_buff *skb)
{
	skb->cb[4] = 0;
}

static __always_inline bool cb_tunnel(struct __sk_buff *skb, struct addr *from)
{
	if (skb->cb[4] != 1)
		return false;
	from->w[0] = skb->cb[0];
	from->w[1] = skb->cb[1];
	from->w[2] = skb->cb[2];
	from->w[3] = skb->cb[3];
	return true;
}

#endif
