/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* The fast path: packets of decided flows, one flow lookup each; all else goes to the hook's slow path. Layer: tc programs.
 * Fully inlined: before 5.10 (arm64: 6.0) a program that tail-calls may have no subprograms. */
#ifndef NP_FAST_H
#define NP_FAST_H

#include "send.h"

static __always_inline int drop_counted(enum drop why)
{
	count_slot(why);
	return TC_ACT_SHOT;
}

/* Is the flow decided, fresh and unremarkable enough to go on without a closer look? */
static __always_inline bool fast_enough(const struct ct_value *v, const struct ct_leg *leg, const struct pkt *p, const enum hook hook)
{
	__u32 needed = LEG_READY | (hook == TO_WORKLOAD ? LEG_APPROVED : 0);

	if ((leg->flags & needed) != needed || np_now() - v->seen > CT_REFRESH_NS)
		return false;
	if (p->tcp_flags & (TCP_SYN | TCP_FIN | TCP_RST))
		return false;
	if (hook_is_from(hook) && p->ttl <= 1)
		return false;
	return p->len <= leg->mtu || p->gso;
}

/* FAST_SLOW: not for us; everything else is a TC action. */
#define FAST_SLOW (-0x1000)

static __always_inline int fast_path(struct __sk_buff *skb, const enum hook hook)
{
	enum drop why = DROP_NONE;
	struct ct_value *v;
	struct ct_leg *leg;
	struct ct_key key;
	enum parse parsed;
	struct pkt p;
	__u32 dir;
	int act;

	if (!hook_is_from(hook) && mark_is_decided(skb))
		return NP_PASS;
	if (hook == FROM_HOST)
		cb_clear_tunnel(skb);
	parsed = pkt_parse_fast(skb, &p);
	if (hook == FROM_HOST && parsed == PARSE_OK && p.proto == IPPROTO_UDP && p.t.dport == cfg.tunnel_port) {
		switch (decap(skb, &p, &why)) {
		case DECAP_DROP:
			return drop_counted(why);
		case DECAP_TAKEN:
			cb_set_tunnel(skb, &p.t.src);
			parsed = pkt_parse_fast(skb, &p);
			break;
		case DECAP_NONE:
			break;
		}
	}
	if (parsed == PARSE_OTHER)
		return NP_PASS;
	if (parsed == PARSE_SLOW)
		return FAST_SLOW;
	dir = ct_key_of(&key, &p.t, p.proto);
	v = bpf_map_lookup_elem(&np_ct, &key);
	if (!v)
		return FAST_SLOW;
	leg = &v->leg[dir & 1];
	if (!fast_enough(v, leg, &p, hook))
		return FAST_SLOW;
	ct_note_ack(leg, &p);
	act = send(skb, &p, v, leg, hook);
	return IS_DROPPED(act) ? drop_counted(DROP_REASON(act)) : act;
}

#endif
