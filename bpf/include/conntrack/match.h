/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* Is a packet one of the flow that has its addresses and ports? By the way it came. Layer: shared by fast and slow
 * paths. */
#ifndef NP_CONNTRACK_MATCH_H
#define NP_CONNTRACK_MATCH_H

#include "base/addr.h"
#include "base/mark.h"
#include "base/pkt.h"

/* At a hook where packets leave: has this node translated the packet, or taken it out of the tunnel? Its flow was
 * found where it came in, and it carries the mark. */
static __always_inline bool is_told(struct __sk_buff *skb, const enum hook hook)
{
	return !hook_is_from(hook) && mark_is_translated(skb);
}

/* At a hook where packets leave, for one that no program has seen come in: is its source (`info`) the address of a pod
 * or a service that did not send it? */
static __always_inline bool is_pretended(struct __sk_buff *skb, const struct addr_info *info)
{
	return info && ((info->kind == ADDR_LOCAL_POD && (!info->ifindex || info->ifindex != skb->ingress_ifindex)) ||
			info->kind == ADDR_SERVICE);
}

/* Did the packet come the way that this flow's packets of its direction come? Others are another flow's. Where they
 * leave, a connection that another proxy made has packets that the kernel has translated. */
static __always_inline bool came_its_way(const struct ct_value *v, const struct ct_leg *leg,
					 const struct addr *tunnel_from, const enum hook hook)
{
	if (hook == FROM_HOST && leg->flags & LEG_BY_NODE)
		return false;
	if (leg->flags & LEG_ANSWER && (hook != FROM_HOST || !(leg->flags & LEG_TUNNELLED)))
		return true;
	if (!hook_is_from(hook) && v->state & CT_FOREIGN)
		return true;
	if (!tunnel_from)
		return !(leg->flags & (LEG_TUNNELLED | LEG_INNER));
	return leg->flags & LEG_TUNNELLED && addr_eq(&v->via, tunnel_from);
}

/* Does a flow come in here that is known by where it left alone, for there were no rules for what comes in? */
static __always_inline bool begins_again(const struct ct_leg *leg, const enum hook hook)
{
	return cfg.host_policy && hook == FROM_HOST && leg->hook == TO_HOST && !(leg->flags & LEG_ANSWER);
}

/* Does the packet pass another device than the one whose rules allowed the flow? A process may choose the device, and
 * so may a sender that forges its source. */
static __always_inline bool by_other_device(struct __sk_buff *skb, const struct ct_value *v, const struct ct_leg *leg,
					    const enum hook hook)
{
	if (!cfg.host_policy || leg->hook != hook || leg->flags & LEG_ANSWER || v->device == skb->ifindex)
		return false;
	return hook == FROM_HOST || (hook == TO_HOST && leg->flags & LEG_STACK);
}

#endif
