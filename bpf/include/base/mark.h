/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* What one program tells a later one about a packet: skb mark bits, touched only here. Layer: tc programs. */
#ifndef NP_BASE_MARK_H
#define NP_BASE_MARK_H

#include "base/compat.h"

/*
 * bit         writer                  reader                 meaning
 * 0x01000000  all                     to_workload, to_host   decided by this node: pass without a look
 * 0x02000000  all                     to_workload, to_host   translated by this node, or out of its tunnel: of no
 * other flow than it was then 0x04000000  from_workload           to_workload, to_host   given to the kernel as it
 * came from a pod: its source is true
 *
 * The mark does not leave the node: crossing to a pod's namespace or a wire clears it.
 */
#define NP_MARK_DECIDED 0x01000000
#define NP_MARK_TRANSLATED 0x02000000
#define NP_MARK_ASKED 0x04000000

static __always_inline bool mark_is_decided(struct __sk_buff *skb)
{
	return skb->mark & NP_MARK_DECIDED;
}

static __always_inline void mark_set_decided(struct __sk_buff *skb)
{
	skb->mark = skb->mark | NP_MARK_DECIDED;
}

static __always_inline bool mark_is_translated(struct __sk_buff *skb)
{
	return skb->mark & NP_MARK_TRANSLATED;
}

static __always_inline void mark_set_translated(struct __sk_buff *skb)
{
	skb->mark = skb->mark | NP_MARK_TRANSLATED;
}

/* Has a program seen where it came from? */
static __always_inline bool mark_is_known(struct __sk_buff *skb)
{
	return skb->mark & (NP_MARK_TRANSLATED | NP_MARK_ASKED);
}

static __always_inline void mark_set_asked(struct __sk_buff *skb)
{
	skb->mark = skb->mark | NP_MARK_ASKED;
}

#endif
