/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* How a program tells the one that stands by behind it on the hook that it has run (decisions/015). Layer: tc
 * programs. */
#ifndef NP_BASE_STANDBY_H
#define NP_BASE_STANDBY_H

#include "base/pkt.h"
#include "base/verdict.h"

#define PASSED_ON 0x6e700000

/* In the packet's last word of the control block, which the kernel leaves alone between programs of a hook. What an
 * earlier hook has left there is of another device or direction. */
static __always_inline __u32 passed_on_word(struct __sk_buff *skb, const enum hook hook)
{
	return (PASSED_ON ^ skb->ifindex) << 1 | hook_is_from(hook);
}

static __always_inline int passed_on(struct __sk_buff *skb, enum verdict verdict, const enum hook hook)
{
	if (verdict == VERDICT_PASS)
		skb->cb[4] = passed_on_word(skb, hook);
	return verdict;
}

static __always_inline bool was_passed_on(struct __sk_buff *skb, const enum hook hook)
{
	return skb->cb[4] == passed_on_word(skb, hook);
}

#endif
