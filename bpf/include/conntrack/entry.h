/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* Flows: key order, lookup, age, TCP state. Layer: tc programs. */
#ifndef NP_CONNTRACK_ENTRY_H
#define NP_CONNTRACK_ENTRY_H

#include "base/pkt.h"

/* How stale `seen` may be: a flow's first packet after that takes the slow path, which refreshes its entry and looks
 * whether its backend is still there: so answers must not do that for the client's. Jiffies cost nothing where a
 * clock costs 20 ns a packet. */
#define CT_FRESH_NS 750000000ULL

/* The bits of `seen` that are of jiffies: 17 ms are too little to matter, and these come round every 4 hours or
 * more. */
#define CT_JIFFIES 0xffffffULL

static __always_inline void ct_touch(struct ct_value *v, __u64 now)
{
	v->seen = cfg.jiffies ? (now & ~CT_JIFFIES) | (bpf_jiffies64() & CT_JIFFIES) : now;
}

static __always_inline bool ct_fresh(const struct ct_value *v)
{
	if (cfg.jiffies)
		return ((bpf_jiffies64() - v->seen) & CT_JIFFIES) <= cfg.fresh_jiffies;
	return np_now() - v->seen <= CT_FRESH_NS;
}

#define CT_SEEN_BOTH (CT_SEEN_LO | CT_SEEN_HI)

/* By this byte flows know whether they were judged by the rules that are in force. It may come round again: old
 * flows are judged again with every closer look in any case. */
static __always_inline __u8 policy_epoch(void)
{
	struct node_state *state;
	__u32 zero = 0;

	state = bpf_map_lookup_elem(&np_state, &zero);
	return state ? state->epoch : 0;
}

/* Is the tuple's source the key's hi? */
static __always_inline bool ct_from_hi(const struct ct_tuple *t)
{
	if (t->src.w[3] != t->dst.w[3])
		return t->src.w[3] > t->dst.w[3];
	if (t->src.w[0] != t->dst.w[0])
		return t->src.w[0] > t->dst.w[0];
	if (t->src.w[1] != t->dst.w[1])
		return t->src.w[1] > t->dst.w[1];
	if (t->src.w[2] != t->dst.w[2])
		return t->src.w[2] > t->dst.w[2];
	return t->sport > t->dport;
}

/* The leg of the other direction. Verifiers before 5.10 take the result of a negation for any number: so it is a
 * sum here, out of the compiler's sight, and the mask is what bounds it. */
static __always_inline __u32 opposite(__u32 dir)
{
	__u64 other = (__u64)dir + 1;

	opaque(other);
	return other & 1;
}

/* Fills the key of the tuple's flow; returns the index of the leg of packets that look like the tuple. */
static __always_inline __u32 ct_key_of(struct ct_key *k, const struct ct_tuple *t, __u8 proto)
{
	k->proto = proto;
	k->pad = 0;
	k->lane = 0;
	if (ct_from_hi(t)) {
		k->lo = t->dst;
		k->hi = t->src;
		k->lo_port = t->dport;
		k->hi_port = t->sport;
		return 1;
	}
	k->lo = t->src;
	k->hi = t->dst;
	k->lo_port = t->sport;
	k->hi_port = t->dport;
	return 0;
}

/* The tuple of the answer to a packet with this tuple. */
static __always_inline void ct_reverse(struct ct_tuple *r, const struct ct_tuple *t)
{
	r->src = t->dst;
	r->dst = t->src;
	r->sport = t->dport;
	r->dport = t->sport;
}

static __always_inline bool ct_tuple_eq(const struct ct_tuple *a, const struct ct_tuple *b)
{
	return addr_eq(&a->src, &b->src) && addr_eq(&a->dst, &b->dst) && a->sport == b->sport && a->dport == b->dport;
}

/* The idle timeout by state: reset, FIN of either end, established, half open. The settings are FelixConfiguration's
 * bpfConntrackTimeouts. The kernel forgets datagrams that were one question and one answer as soon as those without an
 * answer: of another proxy no flow may be left here that it no longer translates. */
static __always_inline __u64 ct_timeout(const struct ct_value *v, __u8 proto)
{
	if (proto == IPPROTO_TCP) {
		if (v->state & CT_RST)
			return cfg.timeout_tcp_rst;
		if (v->state & (CT_FIN_LO | CT_FIN_HI))
			return cfg.timeout_tcp_fin;
		return v->state & CT_TCP_OPEN ? cfg.timeout_tcp_open : cfg.timeout_tcp_syn;
	}
	if (proto == IPPROTO_UDP)
		return (v->state & (CT_SEEN_BOTH | CT_FOREIGN)) == CT_SEEN_BOTH ? cfg.timeout_udp_stream
										: cfg.timeout_udp;
	return cfg.timeout_icmp;
}

/* An expired entry is as good as none; sweeps only collect garbage. */
static __always_inline bool ct_expired(const struct ct_value *v, __u8 proto, __u64 now)
{
	return now > v->seen && now - v->seen > ct_timeout(v, proto);
}

/* May a new connection take over the tuple? With DSR the backend's FIN does not pass here. */
static __always_inline bool ct_closing(const struct ct_value *v)
{
	const __u8 fins = v->state & (CT_FIN_LO | CT_FIN_HI);

	if (v->state & CT_RST)
		return true;
	return (v->leg[0].flags | v->leg[1].flags) & LEG_DSR ? fins : fins == (CT_FIN_LO | CT_FIN_HI);
}

/* Is the entry dead, or closing and the packet the SYN of the tuple's next connection? */
static __always_inline bool ct_replaceable(const struct ct_value *v, const struct pkt *p, __u64 now)
{
	return ct_expired(v, p->proto, now) || ((p->tcp_flags & (TCP_SYN | TCP_ACK)) == TCP_SYN && ct_closing(v));
}

static __always_inline __u8 ct_seen_bit(__u32 dir)
{
	return dir ? CT_SEEN_HI : CT_SEEN_LO;
}

static __always_inline __u8 ct_fin_bit(__u32 dir)
{
	return dir ? CT_FIN_HI : CT_FIN_LO;
}

/* What a packet of direction `dir` adds to the flow's state. */
static __always_inline __u8 ct_state_after(__u8 state, const struct pkt *p, __u32 dir)
{
	state |= ct_seen_bit(dir);
	if (p->proto != IPPROTO_TCP)
		return state;
	if (p->tcp_flags & TCP_FIN)
		state |= ct_fin_bit(dir);
	if (p->tcp_flags & TCP_RST)
		state |= CT_RST;
	else
		state &= ~CT_RST; /* the flow lives: the receiver has not accepted the RST */
	return state;
}

/* The same, and to its TCP connection: that is open once the end that opens it has acknowledged the other's SYN. DSR's
 * answers do not pass here, so there the acknowledgement tells of them. */
static __always_inline void ct_track(struct ct_value *v, const struct pkt *p, __u32 dir)
{
	__u16 flags;

	v->state = ct_state_after(v->state, p, dir);
	if (p->proto != IPPROTO_TCP)
		return;
	if (p->tcp_flags & TCP_ACK)
		v->leg[dir & 1].flags &= ~LEG_OPENING;
	flags = v->leg[0].flags | v->leg[1].flags;
	if (!(flags & LEG_OPENING) && ((v->state & CT_SEEN_BOTH) == CT_SEEN_BOTH || flags & LEG_DSR))
		v->state |= CT_TCP_OPEN;
}

/* Remembers how far the sender has acknowledged, which decides whether an answer's RST is believed. */
static __always_inline void ct_note_ack(struct ct_leg *leg, const struct pkt *p)
{
	if (p->proto == IPPROTO_TCP && (p->tcp_flags & TCP_ACK)) {
		leg->ack = p->ack;
		leg->window = p->window;
	}
}

/* Counts a packet of this leg at the first hook of this node that sees it: where packets leave, only the node's own are
 * new. Two processors that have packets of one leg at once may lose one of them: the sums are lower bounds. */
static __always_inline void ct_account(struct __sk_buff *skb, struct ct_leg *leg, const struct pkt *p,
				       const enum hook hook)
{
	if (!accounts() || (!hook_is_from(hook) && skb->ingress_ifindex))
		return;
	leg->packets += p->gso ? skb->gso_segs : 1;
	leg->bytes += p->len;
}

/* Of a side whose SYN was not seen: what it may have offered at most. */
#define WSCALE_UNKNOWN 14

/* RFC 5961 in spirit: the sequence number must lie in what the other side is ready to receive. A side that has not
 * yet acknowledged anything (connection refused) cannot be checked. */
static __always_inline bool ct_rst_in_window(const struct ct_leg *other, const struct pkt *p)
{
	__u32 window = (__u32)other->window << (other->wscale & 15);

	if (!other->ack)
		return true;
	return p->seq - other->ack <= window || p->seq + 1 == other->ack;
}

#endif
