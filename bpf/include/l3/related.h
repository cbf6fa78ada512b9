/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* An ICMP error about a flow, or a packet that cannot be read: whose is it? Layer: slow paths. */
#ifndef NP_L3_RELATED_H
#define NP_L3_RELATED_H

#include "conntrack/lookup.h"
#include "l3/path.h"

/* Must a packet that cannot be read be dropped? Yes for what a pod sends or gets, and for what the host's rules are
 * about. But fragments for the node itself pass: it reassembles them with their first, which is judged. Extension
 * headers hide what the host's rules ask for; they do not hide a forged source. Writes fib. */
static __noinline bool unread_is_ours(struct __sk_buff *skb, struct scratch *s, enum drop why)
{
	struct addr_info *info = bpf_map_lookup_elem(&np_addrs, &s->p.t.dst);
	const bool own = info && info->kind == ADDR_SELF;

	if (s->hook == FROM_WORKLOAD || s->hook == TO_WORKLOAD || s->p.tunnelled ||
	    (info && (info->kind == ADDR_LOCAL_POD || is_stray(skb, s, info))))
		return true;
	if (why == DROP_EXTENSION_HEADERS)
		return host_asks(skb->ifindex) || (s->hook == FROM_HOST && source_is_elsewhere(s));
	return s->hook == FROM_HOST && host_asks(skb->ifindex) && !own &&
	       !addr_is_own(skb, s, &s->p.t.src, &s->p.t.dst);
}

/* May the sender tell of a service's flow that passed another node? Any router may. But what a pod of the overlay is
 * sent does not pass services. */
static __always_inline bool may_tell_of_service(struct scratch *s, const struct quoted *quoted)
{
	return !(addr_is_inner(&s->p.t.src, s->p.v4) || addr_is_multicast(&s->p.t.src, s->p.v4) ||
		 source_is_elsewhere(s) || (cfg.overlay && (route_to(&s->p.t.src) || route_to(&quoted->t.src))));
}

/* Is the leg that of a service's flow which came to this node from the network? An error about it may have come to any
 * node that has the service's address, and out of the tunnel from there. */
static __always_inline bool came_to_service(const struct ct_leg *leg)
{
	return leg->hook == FROM_HOST &&
	       (leg->flags & (LEG_NAT | LEG_ANSWER | LEG_TUNNELLED | LEG_INNER | LEG_BY_NODE)) == LEG_NAT;
}

/* May the error's sender report about the flow in s->draft.v? In the network any router may, by an address of a host,
 * also one of the link. In the tunnel the flow's other end may, and the node that the flow passes; also of a service's
 * flow that came from the network, any node for such a router. With a source that is another node's pod only that end
 * may: no router has such an address. Reads draft.v. */
static __noinline bool may_tell(struct __sk_buff *skb, struct scratch *s, const struct quoted *quoted)
{
	const struct ct_leg *answers = &s->draft.v.leg[s->dir & 1], *went = &s->draft.v.leg[opposite(s->dir)];
	/* from a device without programs, for example */
	const bool brought = !hook_is_from(s->hook) && skb->ingress_ifindex && !mark_is_known(skb);

	if (!s->p.tunnelled && (s->hook == FROM_HOST || brought)) {
		if (answers->flags & LEG_BY_NODE || went->flags & LEG_ENCAP ||
		    (answers->flags & LEG_ANSWER && answers->flags & LEG_TUNNELLED))
			return false; /* the network has not had what it quotes */
		return !(addr_is_inner(&s->p.t.src, s->p.v4) || addr_is_multicast(&s->p.t.src, s->p.v4) ||
			 source_is_elsewhere(s));
	}
	if (!s->p.tunnelled)
		return true;
	if (addr_eq(&s->p.t.src, &quoted->t.src))
		return true;
	if (came_to_service(answers))
		return may_tell_of_service(s, quoted);
	return addr_eq(&s->draft.v.via, &s->tunnel_from) && !(cfg.overlay && route_to(&s->p.t.src));
}

/* Do rules that have changed meanwhile allow the flow that the error quotes? Packets of an echo are judged
 * themselves. Writes src, dst, judged, eval, and p for a while. */
static __noinline enum drop related_judge(struct __sk_buff *skb, struct scratch *s, struct ct_value *v,
					  const struct quoted *quoted)
{
	struct ct_tuple was = s->p.t;
	__u8 proto = s->p.proto;
	enum drop why;

	if (!HAS_JUDGED_ERRORS || quoted_is_echo(quoted) || v->epoch == policy_epoch())
		return DROP_NONE;
	s->p.t = quoted->t;
	s->p.proto = quoted->proto;
	s->p.tcp_flags = TCP_ACK; /* of a connection that there is, and no SYN of another */
	judged_again(skb, s, v);
	why = flow_judge(skb, s);
	if (!why)
		flow_note(s, v);
	if (why)
		flow_deny(s, v);
	s->p.t = was;
	s->p.proto = proto;
	s->p.tcp_flags = 0;
	return why;
}

/* The flow that another node sends in the tunnel to a backend here; 0: there is none. Writes key, dir. */
static __always_inline struct ct_value *flow_of_node(struct scratch *s, const struct ct_tuple *t, __u8 proto)
{
	struct ct_value *v;

	s->dir = ct_key_of(&s->key, t, proto);
	v = bpf_map_lookup_elem(&np_ct, &s->key);
	if (!v || ct_expired(v, proto, s->now) ||
	    (v->leg[s->dir & 1].flags & (LEG_TUNNELLED | LEG_NAT | LEG_ANSWER)) != LEG_TUNNELLED)
		return 0;
	return v;
}

/* Has p.t, of p.proto, such a flow? Apart from the loop that asks: once is enough for the verifier. Writes key, dir. */
NP_GLOBAL __u32 has_flow_of_node(void)
{
	struct scratch *s = scratch_take();

	return s && flow_of_node(s, &s->p.t, s->p.proto);
}

/* Which of the list's backends here has a flow of the client in p.t that another node sent? Its slot; 0: none has.
 * Writes key, dir, p.t. */
NP_GLOBAL __u32 own_slot_of_flow(__u64 list)
{
	struct scratch *s = scratch_take();
	struct backend *be;

	if (!s)
		return 0;
	for (__u32 i = 0; i < OWN_SLOTS_ASKED; i++) {
		be = backend_in(list, OWN_SLOTS + i);
		if (!be)
			break;
		s->p.t.dst = be->addr;
		s->p.t.dport = be->port;
		if (has_flow_of_node())
			return OWN_SLOTS + i;
	}
	return 0;
}

/* The backend of the service's flow that an error quotes: the one here that has the flow, else by a choice that each
 * node makes alike; 0: nothing tells. Writes key, dir, and p for a while. */
static __noinline struct backend *related_backend(struct scratch *s, const struct quoted *quoted)
{
	struct ct_tuple was = s->p.t;
	const __u8 proto = s->p.proto;
	struct addr_info info = {};
	const struct choice *from;
	struct backend *be = 0;
	struct frontend *fe;
	__u32 slot;

	if (s->hook != FROM_HOST)
		return 0;
	s->p.t = quoted->t;
	s->p.proto = quoted->proto;
	fe = service_of_packet(s, &info);
	if (fe) {
		from = choice_of(s, fe);
		slot = own_slot_of_flow(from->list);
		s->p.t = quoted->t;
		if (slot)
			be = backend_in(from->list, slot);
		else if ((fe->flags & (FRONTEND_MAGLEV | FRONTEND_PODS)) == FRONTEND_MAGLEV)
			be = pick_by_maglev(s, fe, from, &slot);
	}
	s->p.t = was;
	s->p.proto = proto;
	return be;
}

/* An error about a service's flow that this node does not know: the network may have led the flow to another one. It
 * goes to the node of the flow's backend, which must know the flow, from the service's node to its pod.
 * Writes key, dir, draft.v, fib, and what related_judge writes. */
static __noinline enum verdict related_service(struct __sk_buff *skb, struct scratch *s, const struct quoted *quoted)
{
	struct backend *be = related_backend(s, quoted);
	struct quoted inner = *quoted;
	struct ct_value *v;
	enum drop why;

	if (!be)
		return VERDICT_NONE;
	if (!may_tell_of_service(s, quoted))
		return dropped(DROP_SPOOFED);
	if (!addr_is_zero(&be->node)) {
		__builtin_memset(&s->draft.v, 0, sizeof(s->draft.v));
		if (s->p.tunnelled || way_by_tunnel(skb, s, &s->draft.v, &s->draft.v.leg[s->dir & 1], &be->node))
			return VERDICT_NONE;
		return flow_send(skb, s, &s->draft.v);
	}
	inner.t.dst = be->addr;
	inner.t.dport = be->port;
	v = flow_of_node(s, &inner.t, inner.proto);
	if (!v)
		return VERDICT_NONE;
	s->draft.v = *v;
	why = related_judge(skb, s, v, &inner);
	if (!why)
		why = icmp_translate(skb, &s->p, quoted, &inner.t);
	if (why)
		return dropped(why);
	count_slot(DROP_MAX + COUNT_ICMP_RELATED);
	return flow_send(skb, s, &s->draft.v);
}

/* An ICMP error finds the flow it is about and goes the way of its answers.
 * Reads first_fragment; writes quoted, key, dir, draft.v, and what related_judge writes. */
static __noinline enum verdict icmp_related(struct __sk_buff *skb, struct scratch *s)
{
	struct quoted *quoted = &s->quoted; /* calls are deep from here: see test/bpf/stack.test.ts */
	struct ct_value *v;
	struct ct_leg *leg;
	enum drop why;

	__builtin_memset(quoted, 0, sizeof(*quoted));
	why = quoted_read(skb, s, quoted, s->p.l4 + sizeof(struct icmp));
	if (s->hook == FROM_WORKLOAD && quoted->has_ends && !addr_eq(&s->p.t.src, &quoted->t.src))
		return dropped(DROP_SPOOFED); /* a pod forwards for no other: it reports packets sent to itself */
	/* its receiver may read more of it than we do, or have the rest in another fragment: no error is so long */
	if (why && (quoted->has_ends || s->first_fragment) && unread_is_ours(skb, s, why))
		return dropped(why);
	if (why)
		return VERDICT_NONE; /* about no packet that we could have sent on */
	if (!addr_eq(&s->p.t.dst, &quoted->t.dst))
		return VERDICT_NONE; /* else an end of a flow could send anything to any address */
	if (is_tunnels(s, quoted))
		path_learn(skb, s, quoted);
	s->dir = ct_key_of(&s->key, &quoted->t, quoted->proto);
	v = bpf_map_lookup_elem(&np_ct, &s->key);
	if (!v || ct_expired(v, quoted->proto, s->now))
		return related_service(skb, s, quoted);
	s->draft.v = *v;
	if (!may_tell(skb, s, quoted))
		return dropped(DROP_SPOOFED);
	why = related_judge(skb, s, v, quoted);
	if (why)
		return dropped(why);
	leg = &s->draft.v.leg[s->dir & 1];
	if (leg->flags & LEG_NAT) {
		if (!(leg->flags & LEG_READY)) {
			why = flow_decide(skb, s, &s->draft.v);
			if (why)
				return dropped(why);
		}
		if (s->hook == FROM_HOST && leg->flags & LEG_LATER)
			return VERDICT_PASS;
		why = icmp_translate(skb, &s->p, quoted, &s->draft.v.out);
		if (why)
			return dropped(why);
		count_slot(DROP_MAX + COUNT_ICMP_RELATED);
	}
	leg->flags &= ~LEG_NAT; /* it is done */
	return flow_send(skb, s, &s->draft.v);
}

#endif
