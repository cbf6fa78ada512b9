/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* What one program hands to a later one about a packet: skb mark bits, touched only here. Layer: tc programs. */
#ifndef NP_BASE_MARK_H
#define NP_BASE_MARK_H

#include "base/compat.h"

/*
 * The readers are to_workload and to_host, and from_host of what a program answers.
 *
 * bit         writer         meaning
 * 0x01000000  all            decided by this node: pass without a look
 * 0x02000000  all            translated by this node, or out of its tunnel: its flow was found where it came in
 * 0x04000000  from_workload  given to the kernel as it came from a pod: its source is true
 *
 * The mark does not leave the node: crossing to a pod's namespace or a wire clears it.
 *
 * A process of the node may give its packets any mark (SO_MARK). They have come by no device, or by loopback, and so
 * have some that a program marked: what it translated or put into the tunnel, and what the kernel's tunnel device or
 * its fragmentation sends. These have NP_MARKED_INDEX in the packet's index of traffic control, which no socket can
 * write. What has come by another device is no socket's of the node and needs no index: others' filters may change it.
 */
#define NP_MARK_DECIDED 0x01000000
#define NP_MARK_TRANSLATED 0x02000000
#define NP_MARK_ASKED 0x04000000

#define NP_MARK_BITS (NP_MARK_DECIDED | NP_MARK_TRANSLATED | NP_MARK_ASKED)
#define NP_MARKED_INDEX 0x6e70

/* Is the mark a program's word? */
static __always_inline bool mark_counts(struct __sk_buff *skb)
{
	return skb->ingress_ifindex > NP_LOOPBACK || skb->tc_index == NP_MARKED_INDEX;
}

static __always_inline bool mark_has(struct __sk_buff *skb, const __u32 bits)
{
	return skb->mark & bits && mark_counts(skb);
}

/* Takes away what is no program's word, for it would count from now on. */
static __always_inline void mark_set(struct __sk_buff *skb, const __u32 bit)
{
	__u32 mark;

	opaque(skb); /* the context is to be read through its own pointer */
	mark = skb->mark;
	if (!mark_counts(skb))
		mark &= ~NP_MARK_BITS;
	skb->mark = mark | bit;
	skb->tc_index = NP_MARKED_INDEX;
}

static __always_inline bool mark_is_decided(struct __sk_buff *skb)
{
	return mark_has(skb, NP_MARK_DECIDED);
}

static __always_inline void mark_set_decided(struct __sk_buff *skb)
{
	mark_set(skb, NP_MARK_DECIDED);
}

static __always_inline bool mark_is_translated(struct __sk_buff *skb)
{
	return mark_has(skb, NP_MARK_TRANSLATED);
}

static __always_inline void mark_set_translated(struct __sk_buff *skb)
{
	mark_set(skb, NP_MARK_TRANSLATED);
}

/* Has a program seen where the packet came from? */
static __always_inline bool mark_is_known(struct __sk_buff *skb)
{
	return mark_has(skb, NP_MARK_TRANSLATED | NP_MARK_ASKED);
}

static __always_inline void mark_set_asked(struct __sk_buff *skb)
{
	mark_set(skb, NP_MARK_ASKED);
}

#endif
