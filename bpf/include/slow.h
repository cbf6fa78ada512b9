/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* The slow path: a flow's first packets, its turns (SYN, FIN, RST, age), and whatever is no plain TCP or UDP.
 * Layer: tc programs. Made of subprograms, and therefore without tail calls of its own. */
#ifndef NP_SLOW_H
#define NP_SLOW_H

#include "base/standby.h"
#include "conntrack/packet.h"
#include "l3/held.h"
#include "l3/neighbour.h"
#include "l3/related.h"
#include "l3/reset.h"

/* A pod sends with its own address only: rules know it by no other, nor by its link-local one. Writes src. */
static __noinline enum drop source_own(struct __sk_buff *skb, struct scratch *s)
{
	struct addr_info *info = bpf_map_lookup_elem(&np_addrs, &s->p.t.src);

	if (info && info->kind == ADDR_LOCAL_POD && info->ifindex == skb->ifindex) {
		s->src = *info;
		return DROP_NONE;
	}
	return DROP_SPOOFED;
}

/* What the fast path would not read. VERDICT_NONE: it may be of a flow.
 * Writes p, walk, first_fragment, answer.buf. */
static __noinline enum verdict slow_parse(struct __sk_buff *skb, struct scratch *s)
{
	enum link_message message;
	enum drop why;
	__be16 proto;
	bool held;

	__builtin_memset(&s->p, 0, offsetof(struct pkt, tunnelled));
	s->p.fragment = 0;
	s->p.len = pkt_length(skb);
	s->p.gso = skb->gso_segs > 1;
	if (bpf_skb_load_bytes(skb, offsetof(struct ethhdr, h_proto), &proto, sizeof(proto)))
		return dropped(DROP_SHORT);
	if (proto == bpf_htons(ETH_P_ARP))
		return s->hook == FROM_WORKLOAD ? arp_from_pod(skb, s) : VERDICT_PASS;
	if (proto == bpf_htons(ETH_P_IP))
		why = parse_v4(skb, s);
	else if (proto == bpf_htons(ETH_P_IPV6))
		why = parse_v6(skb, s);
	else
		return VERDICT_PASS;
	if (why == DROP_FRAGMENT_UNKNOWN && s->hook == FROM_WORKLOAD && source_own(skb, s))
		return dropped(DROP_SPOOFED);
	held = why == DROP_FRAGMENT_UNKNOWN && is_awaited(s) && fragment_hold(skb, s);
	if ((why == DROP_FRAGMENT_UNKNOWN || why == DROP_EXTENSION_HEADERS) && !unread_is_ours(skb, s, why))
		return VERDICT_PASS;
	if (held)
		return VERDICT_CONSUMED;
	if (why)
		return dropped(why);
	message = link_message(skb, s);
	if (message != LINK_NONE)
		return s->hook == FROM_WORKLOAD && message == LINK_DISCOVERY ? nd_from_pod(skb, s) : VERDICT_PASS;
	return VERDICT_NONE;
}

/* The check of the source where packets leave. It holds for all of them, whatever rules and flows say, and on the way
 * out of the node also for packets that cannot be read. Writes key. */
static __noinline enum drop source_leaving(struct __sk_buff *skb, struct scratch *s)
{
	ct_key_of(&s->key, &s->p.t, s->p.proto);
	return source_refused_leaving(skb, s);
}

/* Reads parsed; writes all but what the fast path has written. */
static __always_inline enum verdict slow_packet(struct __sk_buff *skb, struct scratch *s)
{
	enum verdict verdict = s->parsed ? VERDICT_NONE : slow_parse(skb, s);
	enum drop why;

	if (s->hook == TO_HOST ? !is_dropped(verdict) : s->hook == TO_WORKLOAD && verdict == VERDICT_NONE) {
		why = source_leaving(skb, s);
		if (why)
			return dropped(why);
	}
	if (verdict != VERDICT_NONE)
		return verdict;
	if (s->hook == FROM_WORKLOAD) {
		why = source_own(skb, s);
		if (why)
			return dropped(why);
	}
	/* by its address, or by its frame alone, as what is for all of a network */
	if (addr_is_multicast(&s->p.t.dst, s->p.v4) || (s->hook == FROM_HOST && skb->pkt_type != PACKET_HOST)) {
		if (!hook_is_from(s->hook))
			return VERDICT_PASS;
		if (s->hook == FROM_HOST && s->p.v4 && s->p.proto == IPPROTO_IGMP && s->p.ttl == 1 &&
		    !s->first_fragment)
			return VERDICT_PASS; /* as IPv6's listener messages do */
		addr_look(&s->dst, &s->p.t.dst);
		if (s->hook == FROM_HOST)
			s->dst.kind = ADDR_SELF; /* the node is one receiver of all, and does not forward it */
		__builtin_memset(&s->draft.v, 0, sizeof(s->draft.v));
		s->alone = 1; /* of no flow */
		return flow_packet(skb, s);
	}
	if (s->parsed)
		return flow_packet(skb, s);
	if (s->first_fragment) {
		fragment_note(s);
		if (hook_is_from(s->hook) && !s->p.tunnelled && fragments_release(skb, s))
			return VERDICT_CONSUMED;
	}
	if (icmp_is_error(skb, &s->p)) {
		verdict = icmp_related(skb, s);
		if (verdict != VERDICT_NONE)
			return verdict;
		addr_look(&s->dst, &s->p.t.dst);
		if (hook_is_from(s->hook) && is_stray(skb, s, &s->dst))
			return dropped(DROP_STRAY_SERVICE);
		__builtin_memset(&s->draft.v, 0, sizeof(s->draft.v));
		s->alone = 1;
	}
	return flow_packet(skb, s);
}

static __always_inline int slow_path(struct __sk_buff *skb)
{
	struct scratch *s = scratch_take();
	enum verdict verdict, answer = VERDICT_NONE;
	enum drop why;

	if (!s)
		return drop_counted(DROP_PROGRAM_MISSING);
	s->now = np_now();
	s->mtu = 0;
	s->reroute = 0;
	s->renew = 0;
	s->alone = 0;
	s->by_other = 0;
	s->is_judged = 0;
	s->first_fragment = 0;
	s->told = is_told(skb, s->hook);
	verdict = slow_packet(skb, s);
	if (verdict == VERDICT_PASS && s->hook == FROM_WORKLOAD)
		mark_set_asked(skb);
	if (verdict == dropped(DROP_TOO_BIG) && is_cuttable(s))
		verdict = cut_send(skb, s);
	if (!is_dropped(verdict))
		return passed_on(skb, verdict, s->hook);
	why = drop_reason(verdict);
	count_slot(why);
	event_tell(skb, why == DROP_POLICY ? EVENT_DENIED : EVENT_DROPPED, why);
	np_trace("drop %d at hook %d, device %d", why, s->hook, skb->ifindex);
	if (reset_wanted(why, s->p.proto))
		answer = reset_answer(skb, s);
	else if (answer_wanted(why))
		answer = icmp_answer(skb, s, why, s->mtu);
	return answer == VERDICT_NONE ? TC_ACT_SHOT : answer;
}

#endif
