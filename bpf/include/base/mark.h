/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* What one program hands to a later one about a packet: skb mark bits, touched only here. Layer: tc programs. */
#ifndef NP_BASE_MARK_H
#define NP_BASE_MARK_H

#include "base/compat.h"

/*
 * The readers are to_workload and to_host.
 *
 * bit         writer         meaning
 * 0x01000000  all            decided by this node: pass without a look
 * 0x02000000  all            translated by this node, or out of its tunnel: its flow was found where it came in
 * 0x04000000  from_workload  given to the kernel as it came from a pod: its source is true
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

/* Has a program seen where the packet came from? */
static __always_inline bool mark_is_known(struct __sk_buff *skb)
{
	return skb->mark & (NP_MARK_TRANSLATED | NP_MARK_ASKED);
}

static __always_inline void mark_set_asked(struct __sk_buff *skb)
{
	skb->mark = skb->mark | NP_MARK_ASKED;
}

#endif
