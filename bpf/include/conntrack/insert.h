/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* How flows get into the table: an entry of the packet's own, and of a translated flow one of the backend's view.
 * Layer: slow paths. */
#ifndef NP_CONNTRACK_INSERT_H
#define NP_CONNTRACK_INSERT_H

#include "base/scratch.h"
#include "conntrack/evict.h"
#include "conntrack/match.h"
#include "conntrack/ports.h"
#include "l3/route.h"
#include "l3/tcp_options.h"

/* Does a packet in the middle of a TCP connection that we do not know belong to the proxy before us? */
static __noinline bool taking_over(struct scratch *s)
{
	struct node_state *state;
	__u32 zero = 0;

	if (s->p.proto != IPPROTO_TCP || s->p.origin || pkt_is_syn(&s->p))
		return false;
	state = bpf_map_lookup_elem(&np_state, &zero);
	return state && s->now < state->takeover_until;
}

/* May the packet's flow take the place of this one? Not of one that has just ended and came another way: its server
 * may not have had its last packet, which this one may overtake, and would answer as of the connection that ends. */
static __always_inline bool flow_gives_way(struct scratch *s, const struct ct_value *v)
{
	if (!ct_replaceable(v, &s->p, s->now))
		return false;
	return !ct_fresh(v) || s->told ||
	       came_its_way(v, &v->leg[s->dir & 1], s->p.tunnelled ? &s->tunnel_from : 0, s->hook);
}

/* Is its destination, of which s->dst is known, the node itself or a pod of it? */
static __always_inline bool is_here(const struct scratch *s)
{
	return s->dst.kind == ADDR_SELF || (s->dst.kind == ADDR_LOCAL_POD && s->dst.ifindex);
}

/* What the packet adds to the flow's state by where it is met. */
static __always_inline __u8 brought_bit(const struct scratch *s)
{
	return s->hook == TO_WORKLOAD && !s->told ? CT_BROUGHT : 0;
}

/* Enters s->draft.v at s->key, or s->draft.peer at its own, where no entry is yet; in a full table another flow makes
 * room. 0, or the error of the update. Writes eviction. */
NP_GLOBAL int entry_add(__u32 is_peer)
{
	struct scratch *s = scratch_take();
	const struct ct_value *v;
	const struct ct_key *key;
	long err;

	if (!s)
		return -ENOMEM;
	key = is_peer ? &s->draft.peer_key : &s->key;
	v = is_peer ? &s->draft.peer : &s->draft.v;
	err = bpf_map_update_elem(&np_ct, key, v, BPF_NOEXIST);
	/* another CPU may take the room that this one has made */
#pragma unroll
	for (int i = 0; i < (FOR_FLOOR ? 1 : 2); i++) {
		if (err != -E2BIG || !has_room())
			break;
		err = bpf_map_update_elem(&np_ct, key, v, BPF_NOEXIST);
	}
	return err;
}

/* Enters s->draft.v under the packet's own tuple, unless a live flow is there. Reads dst; writes draft.v, syn. */
static __noinline enum verdict flow_enter_own(struct __sk_buff *skb, struct scratch *s)
{
	struct ct_leg *leg = &s->draft.v.leg[s->dir & 1], *back = &s->draft.v.leg[opposite(s->dir)];
	struct ct_value *v = &s->draft.v, *known;
	long err;

	ct_touch(v, s->now);
	v->state |= ct_state_after(0, &s->p, s->dir) | brought_bit(s);
	back->flags |= LEG_ANSWER;
	if (s->hook == FROM_WORKLOAD)
		back->ifindex = skb->ifindex;
	if (s->hook == FROM_WORKLOAD)
		leg->flags |= LEG_BY_NODE;
	/* answers of a translated flow are seen from the backend's view: what has its service's address already, is
	 * none */
	if (leg->flags & LEG_ENCAP && !(leg->flags & LEG_NAT))
		back->flags |= LEG_TUNNELLED;
	else if (leg->flags & LEG_NAT || is_here(s))
		back->flags |= LEG_BY_NODE;
	if (pkt_is_syn(&s->p))
		leg->flags |= LEG_OPENING;
	if (s->p.tcp_flags & TCP_SYN) {
		syn_options(skb);
		leg->wscale = s->syn.wscale;
	} else {
		leg->wscale = WSCALE_UNKNOWN; /* picked up on its way */
	}
	back->wscale = WSCALE_UNKNOWN;
	ct_note_ack(leg, &s->p);
	ct_account(skb, leg, &s->p, s->hook);
	err = entry_add(false);
	if (!err) {
		recent_note();
		return FLOW_MADE;
	}
	known = bpf_map_lookup_elem(&np_ct, &s->key);
	if (known && !flow_gives_way(s, known))
		return FLOW_THERE;
	return bpf_map_update_elem(&np_ct, &s->key, v, BPF_ANY) ? dropped(DROP_FLOW_INSERT) : FLOW_MADE;
}

/* Makes the backend's view of s->draft.v in s->draft.peer from what packets leave as; returns its direction for
 * answers. Reads draft.v, key, dst; writes draft.peer, draft.peer_key. */
NP_GLOBAL __u32 peer_make(void)
{
	struct scratch *s = scratch_take();
	struct ct_value *v, *peer;
	struct ct_tuple back;
	__u32 dir;

	if (!s)
		return 0;
	v = &s->draft.v;
	peer = &s->draft.peer;
	ct_reverse(&back, &v->out);
	dir = ct_key_of(&s->draft.peer_key, &back, s->p.proto);
	__builtin_memset(peer, 0, sizeof(*peer));
	ct_reverse(&peer->out, &s->p.t);
	peer->lane = s->key.lane;
	peer->epoch = v->epoch;
	peer->egress_rule = v->egress_rule;
	peer->ingress_rule = v->ingress_rule;
	peer->staged_egress_rule = v->staged_egress_rule;
	peer->staged_ingress_rule = v->staged_ingress_rule;
	peer->device = v->device;
	peer->leg[0].hook = v->leg[0].hook;
	peer->leg[1].hook = v->leg[0].hook;
	peer->leg[dir & 1].flags = LEG_NAT | LEG_ANSWER;
	peer->leg[opposite(dir)].flags = LEG_INNER | (v->leg[s->dir & 1].flags & (LEG_BY_NODE | LEG_OPENING));
	if (v->leg[s->dir & 1].flags & LEG_ENCAP) {
		peer->leg[dir & 1].flags |= LEG_TUNNELLED;
		peer->via = v->via;
	} else if (is_here(s)) {
		peer->leg[dir & 1].flags |= LEG_BY_NODE;
	}
	peer->leg[opposite(dir)].ifindex = v->leg[s->dir & 1].ifindex;
	peer->leg[opposite(dir)].met = v->leg[s->dir & 1].met;
	if (s->p.tunnelled) {
		peer->leg[opposite(dir)].flags |= LEG_BY_TUNNEL;
		peer->via = s->tunnel_from;
		peer->leg[dir & 1].flags |= LEG_ENCAP;
	}
	peer->leg[0].wscale = WSCALE_UNKNOWN;
	peer->leg[1].wscale = WSCALE_UNKNOWN;
	ct_touch(peer, s->now);
	peer->state = ct_seen_bit(!dir) | (v->state & CT_TCP_OPEN);
	return dir;
}

/* The other entry of a translated flow, found by reversing what packets leave as; 0 when there is none. `out`: what
 * packets of that one leave as, for a client that was given another backend is in its old one's view no more.
 * Writes draft.peer_key. */
static __noinline struct ct_value *flow_peer(struct scratch *s, const struct ct_value *v, const struct ct_tuple *out,
					     __u32 *dir)
{
	struct ct_tuple back;
	struct ct_value *peer;

	if (!((v->leg[0].flags | v->leg[1].flags) & LEG_NAT))
		return 0;
	ct_reverse(&back, &v->out);
	*dir = ct_key_of(&s->draft.peer_key, &back, s->p.proto);
	s->draft.peer_key.lane = v->lane;
	peer = bpf_map_lookup_elem(&np_ct, &s->draft.peer_key);
	return peer && peer->leg[*dir & 1].flags & LEG_NAT && ct_tuple_eq(&peer->out, out) ? peer : 0;
}

/* A full table may have lost the backend's view alone: the client's next packet for which there is room brings it back.
 * Reads key; writes draft, dst. */
static __noinline void peer_restore(struct scratch *s, const struct ct_value *v)
{
	s->draft.v = *v;
	addr_look(&s->dst, &s->draft.v.out.dst);
	peer_make();
	bpf_map_update_elem(&np_ct, &s->draft.peer_key, &s->draft.peer, BPF_NOEXIST);
}

/* Enters the way back of a translated flow: packets from the backend leave as the service's. The backend's view of the
 * client must be its own: if another flow has the same, the client's port is changed. One that has just ended is
 * replaced where there is no other port: a SYN may overtake its last packet, and be answered as of the connection
 * that ends. Reads key, dst; writes draft. */
static __noinline enum drop flow_enter_peer(struct scratch *s)
{
	struct ct_value *known, *peer = &s->draft.peer;
	__u32 dir = peer_make();
	__be16 sport = s->draft.v.out.sport, dport = s->draft.v.out.dport;
	bool is_over;
	long err;

	opaque(dir); /* the verifier does not know what the function may return */
	err = entry_add(true);
	if (!err)
		return DROP_NONE;
	known = bpf_map_lookup_elem(&np_ct, &s->draft.peer_key);
	if (!known)
		return DROP_FLOW_INSERT;
	is_over = ct_replaceable(known, &s->p, s->now);
	if ((!is_over || ct_fresh(known)) && !(known->leg[dir & 1].flags & LEG_NAT && known->lane == peer->lane &&
					       ct_tuple_eq(&known->out, &peer->out))) {
		port_find(dir);
		peer_make();
		if (!entry_add(true))
			return DROP_NONE;
		if (!is_over)
			return DROP_PORT_COLLISION;
		s->draft.v.out.sport = sport;
		s->draft.v.out.dport = dport;
		peer_make();
	}
	return bpf_map_update_elem(&np_ct, &s->draft.peer_key, peer, BPF_ANY) ? DROP_FLOW_INSERT : DROP_NONE;
}

/* Enters the flow in s->draft.v, and its peer if it is translated. Reads key, dst; writes draft, syn. */
NP_GLOBAL enum verdict flow_enter(struct __sk_buff *skb)
{
	struct scratch *s = scratch_take();
	enum drop why;
	__be16 sport;
	enum verdict verdict;

	if (!s)
		return dropped(DROP_PROGRAM_MISSING);
	verdict = flow_enter_own(skb, s);
	np_trace("flow %x at hook %d, device %d", verdict, s->hook, skb->ifindex);
	if (verdict != FLOW_MADE || !(s->draft.v.leg[s->dir & 1].flags & LEG_NAT))
		return verdict;
	sport = s->draft.v.out.sport;
	why = flow_enter_peer(s);
	if (why) {
		bpf_map_delete_elem(&np_ct, &s->key); /* half a flow would lead the next packet astray */
		return dropped(why);
	}
	if (s->draft.v.out.sport != sport && bpf_map_update_elem(&np_ct, &s->key, &s->draft.v, BPF_ANY))
		return dropped(DROP_FLOW_INSERT);
	return FLOW_MADE;
}

#endif
