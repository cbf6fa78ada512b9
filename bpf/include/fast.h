/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* The fast path: packets of decided flows, one flow lookup each; all else goes to the hook's slow path. Layer: tc
 * programs. Fully inlined: before 5.10 (arm64: 6.0) a program that tail-calls may have no subprograms. */
#ifndef NP_FAST_H
#define NP_FAST_H

#include "base/scratch.h"
#include "conntrack/match.h"
#include "policy/host.h"

/* Is the flow decided, fresh and unremarkable enough to go on without a closer look? */
static __always_inline bool fast_enough(const struct ct_value *v, __u32 dir, const struct pkt *p, const enum hook hook)
{
	const struct ct_leg *leg = &v->leg[dir & 1];
	const __u8 seen = ct_seen_bit(dir);

	if ((leg->flags & (LEG_READY | LEG_OPENING)) != LEG_READY || (v->state & (seen | CT_RST)) != seen ||
	    !ct_fresh(v) || v->epoch != policy_epoch())
		return false;
	if (p->tcp_flags & (TCP_SYN | TCP_FIN | TCP_RST))
		return false;
	/* it is known by packets of which rules without tracking were not asked, as they are here of each */
	if (cfg.untracked && hook == FROM_HOST && v->state & CT_BROUGHT)
		return false;
	if (hook_is_from(hook) && p->ttl <= 1 && !p->tunnelled)
		return false;
	return p->len <= leg->mtu || p->gso;
}

/* Must rules without tracking be asked of the packet here, whatever its flow is? Of what comes in XDP has asked, where
 * it reads it. */
static __always_inline bool is_asked_each(const struct pkt *p, bool unread, const enum hook hook)
{
	return cfg.untracked && !p->tunnelled && (hook == TO_HOST || (hook == FROM_HOST && unread));
}

/* Does the flow do the packet justice: is it its own, by the way it came, and one that may go on? */
static __always_inline bool flow_is_fast(struct __sk_buff *skb, const struct ct_value *v, __u32 dir,
					 const struct pkt *p, const struct addr *tunnel_from, const enum hook hook)
{
	const struct ct_leg *leg = &v->leg[dir & 1];

	if (hook == FROM_WORKLOAD && v->leg[opposite(dir)].ifindex != skb->ifindex)
		return false; /* another pod than the flow's */
	if (!hook_is_from(hook) && leg->flags & LEG_BY_NODE && !mark_is_known(skb) &&
	    is_pretended(skb, bpf_map_lookup_elem(&np_addrs, &p->t.src)))
		return false;
	/* answers out of the tunnel that did not come so before are for here: others are looked at */
	if (tunnel_from && (leg->flags & (LEG_NEIGH | LEG_TUNNELLED)) == LEG_NEIGH)
		return false;
	/* without rules at this device it goes on: else each packet that is forwarded would be the slow path's */
	if (by_other_device(skb, v, leg, hook) || (begins_again(leg, hook) && host_sets_at(skb->ifindex, HOST_REAL)))
		return false;
	return fast_enough(v, dir, p, hook) && (came_its_way(v, leg, tunnel_from, hook) || is_told(skb, hook));
}

/* Hands what was read to the slow path, which runs next on this CPU. Writes what the scratch has of it. */
static __always_inline enum verdict fast_to_slow(struct pkt *p, enum parse parsed, bool known_miss,
						 const struct addr *tunnel_from, const struct origin *origin,
						 const enum hook hook)
{
	struct scratch *s = scratch_take();

	if (!s)
		return dropped(DROP_PROGRAM_MISSING);
	s->hook = hook;
	s->parsed = parsed == PARSE_OK;
	s->known_miss = known_miss;
	if (parsed == PARSE_OK)
		s->p = *p;
	s->p.tunnelled = !!tunnel_from;
	s->p.origin = tunnel_from && origin->proto;
	if (tunnel_from) {
		s->tunnel_from = *tunnel_from;
		s->origin = *origin;
	}
	return VERDICT_SLOW;
}

#define VLAN_ID 0x0fff
#define TAGS_MAX 3

static __always_inline bool is_tag(__be16 proto)
{
	return proto == bpf_htons(ETH_P_8021Q) || proto == bpf_htons(ETH_P_8021AD);
}

/* Is the frame one of this network? A tag of VLAN 0 tells a priority alone, and the kernel will take it off, and
 * the next: so do we, where frames come in. Where they leave it may stay. */
static __always_inline bool tags_are_priorities(struct __sk_buff *skb, const enum hook hook)
{
	if (!hook_is_from(hook))
		return !(skb->vlan_tci & VLAN_ID);
#pragma unroll
	for (int i = 0; i < TAGS_MAX; i++) {
		opaque(skb); /* the context is to be read through its own pointer */
		if (!skb->vlan_present)
			return true;
		if (skb->vlan_tci & VLAN_ID || bpf_skb_vlan_pop(skb))
			return false;
	}
	opaque(skb);
	return !skb->vlan_present;
}

/* The same of a tag that is still in the frame, before its Ethernet type. */
static __always_inline bool untag(struct __sk_buff *skb, const enum hook hook)
{
	struct {
		__be16 tag, id;
	} head;

	if (bpf_skb_load_bytes(skb, offsetof(struct ethhdr, h_proto), &head, sizeof(head)) || !is_tag(head.tag) ||
	    head.id & bpf_htons(VLAN_ID) || !hook_is_from(hook) || bpf_skb_vlan_pop(skb))
		return false;
	return tags_are_priorities(skb, hook);
}

/* What is not IP, or has tags left. Of another network: not ours, and not a pod's either. More priorities than are
 * taken off here the kernel would take off unseen. */
static __always_inline enum verdict other_frame(struct __sk_buff *skb, const enum hook hook)
{
	const bool pods = hook == FROM_WORKLOAD || hook == TO_WORKLOAD;
	__be16 proto = 0;

	opaque(skb);
	if (skb->vlan_present)
		return pods || (hook == FROM_HOST && !(skb->vlan_tci & VLAN_ID)) ? dropped(DROP_VLAN) : VERDICT_PASS;
	bpf_skb_load_bytes(skb, offsetof(struct ethhdr, h_proto), &proto, sizeof(proto));
	return pods && is_tag(proto) ? dropped(DROP_VLAN) : VERDICT_PASS;
}

/* From the network, to others or to all: not ours to route. */
static __always_inline enum verdict frame_to_others(struct __sk_buff *skb, struct pkt *p, const struct origin *origin,
						    const enum hook hook)
{
	if (skb->pkt_type == PACKET_OTHERHOST)
		return VERDICT_PASS;
	untag(skb, hook);
	opaque(skb);
	return skb->vlan_present ? other_frame(skb, hook) : fast_to_slow(p, PARSE_SLOW, false, 0, origin, hook);
}

static __always_inline enum verdict fast_path(struct __sk_buff *skb, const enum hook hook)
{
	const struct addr *tunnel_from = 0;
	struct origin origin = {};
	enum drop why = DROP_NONE;
	struct addr outer;
	struct ct_value *v;
	struct ct_leg *leg;
	struct ct_key key;
	enum parse parsed;
	enum decap taken;
	struct pkt p;
	bool unread; /* XDP leaves it to this program: tagged, or to the tunnel's port */
	__u32 dir;

	/* where packets come in: an answer that a program has made */
	if (hook != FROM_WORKLOAD && mark_is_decided(skb))
		return VERDICT_PASS;
	unread = skb->vlan_present;
	if (unread && !tags_are_priorities(skb, hook))
		return other_frame(skb, hook);
	if (hook == FROM_HOST && skb->pkt_type != PACKET_HOST)
		return frame_to_others(skb, &p, &origin, hook);
	pkt_linear(skb);
	parsed = pkt_parse_fast(skb, &p);
	if (parsed == PARSE_OTHER && untag(skb, hook)) {
		unread = true;
		parsed = pkt_parse_fast(skb, &p);
	}
	if (hook == FROM_HOST && parsed == PARSE_OK && p.proto == IPPROTO_UDP && p.t.dport == cfg.tunnel_port) {
		taken = decap(skb, &p, &origin, &why);
		if (taken == DECAP_DROP)
			return dropped(why);
		if (taken == DECAP_TAKEN) {
			outer = p.t.src;
			tunnel_from = &outer;
			parsed = pkt_parse_fast(skb, &p);
			p.tunnelled = 1;
		} else {
			unread = true;
		}
	}
	if (parsed == PARSE_OTHER)
		return other_frame(skb, hook);
	/* a SYN is the slow path's in any case, and most likely of a flow that is not there yet */
	if (parsed == PARSE_SLOW || (hook_is_from(hook) && (p.tcp_flags & (TCP_SYN | TCP_ACK)) == TCP_SYN))
		return fast_to_slow(&p, parsed, false, tunnel_from, &origin, hook);
	dir = ct_key_of(&key, &p.t, p.proto);
	v = bpf_map_lookup_elem(&np_ct, &key);
	if (!v)
		return fast_to_slow(&p, parsed, true, tunnel_from, &origin, hook);
	if (is_asked_each(&p, unread, hook) || !flow_is_fast(skb, v, dir, &p, tunnel_from, hook))
		return fast_to_slow(&p, parsed, false, tunnel_from, &origin, hook);
	leg = &v->leg[dir & 1];
	ct_note_ack(leg, &p);
	ct_account(skb, leg, &p, hook);
	return send(skb, &p, v, leg, hook, false);
}

#endif
