/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* What rules say of a flow: classify it in each dimension, AND the bits, take the first. Knows nothing of
 * Kubernetes. Layer: slow paths. */
#ifndef NP_POLICY_EVALUATE_H
#define NP_POLICY_EVALUATE_H

#include "base/scratch.h"

#define NO_RULE 0xffffffff
/* Stages that may begin in one block: a packet that passes more of them is allowed by no rule. */
#define MAX_STAGES 16
/* Beside enum rule_action: no rule has decided yet. */
#define RULE_NONE 4
_Static_assert(RULE_NONE > RULE_OPEN, "RULE_NONE is no enum rule_action");

/* The identity of an address that has no row of its own, or a row without an identity. */
NP_PART __u32 identity_by_net(const struct addr *a)
{
	struct net_key k = {};
	__u32 *identity;

	k.prefix = 128;
	k.addr = *a;
	identity = bpf_map_lookup_elem(&np_nets, &k);
	return identity ? *identity : 0;
}

static __always_inline __u32 identity_of(const struct addr *a, const struct addr_info *info)
{
	return info->identity ? info->identity : identity_by_net(a);
}

static __always_inline struct bits *bits_of(const struct query *q, __u32 block, __u32 dimension, __u32 class)
{
	struct bits_key k = {};

	k.set = q->set;
	k.class = class;
	k.block = block;
	k.dimension = dimension;
	return bpf_map_lookup_elem(&np_bits, &k);
}

/* What the set says to such a peer whatever else the packet is: one of enum rule_action, and in *rule which one.
 * RULE_NONE: that matters. */
static __always_inline __u32 sure_verdict(const struct bits *peer, __u32 *rule)
{
	if (!peer || peer->sure == SURE_NOT)
		return RULE_NONE;
	*rule = peer->sure >> 2;
	return peer->sure & 3;
}

/* Of this end's address. */
static __noinline struct bits *bits_of_own(const struct query *q, __u32 block)
{
	struct addr_info *info = bpf_map_lookup_elem(&np_addrs, &q->own);
	__u32 class = info && info->identity ? info->identity : identity_by_net(&q->own);
	struct bits *bits = class ? bits_of(q, block, DIMENSION_OWN, class) : 0;

	return bits ? bits : bits_of(q, block, DIMENSION_OWN, 0);
}

#define NO_CLASS 0xffffffff

/* The class of a port. */
NP_PART __u32 class_of(const struct query *q, const struct ports *ports, __u32 number)
{
	__u64 port = number, high = port >> 8 & 0xff, low = port & 0xff;
	struct page_key k = {};
	struct ports_page *page;
	__u32 class;

	opaque(high);
	if (high > 0xff)
		return NO_CLASS;
	class = ports->at[high];
	if (!(class & PORTS_PAGE))
		return class;
	k.set = q->set;
	k.page = class & ~PORTS_PAGE;
	page = bpf_map_lookup_elem(&np_pages, &k);
	opaque(low);
	if (!page || low > 0xff)
		return NO_CLASS;
	return page->class[low];
}

NP_PART struct ports *ports_of(const struct query *q, __u32 block, __u32 source)
{
	struct ports_key k = {};
	struct ports *ports;

	k.set = q->set;
	k.block = block;
	k.proto = q->proto;
	k.source = source;
	ports = bpf_map_lookup_elem(&np_ports, &k);
	if (ports)
		return ports;
	k.proto = 0;
	return bpf_map_lookup_elem(&np_ports, &k);
}

/* Of the source port. */
static __always_inline struct bits *bits_of_source(const struct query *q, __u32 block)
{
	struct ports *ports = ports_of(q, block, 1);
	__u32 class = ports ? class_of(q, ports, q->source_port) : NO_CLASS;

	return class == NO_CLASS ? 0 : bits_of(q, block, DIMENSION_SOURCE_PORT, class);
}

/* Number of the lowest bit; there is one. Without branches, of which the verifier would follow every combination. */
static __always_inline __u32 lowest_bit(__u64 w)
{
	w = (w & -w) - 1;
	w -= w >> 1 & 0x5555555555555555ULL;
	w = (w & 0x3333333333333333ULL) + (w >> 2 & 0x3333333333333333ULL);
	w = (w + (w >> 4)) & 0x0f0f0f0f0f0f0f0fULL;
	w = w * 0x0101010101010101ULL >> 56;
	opaque(w); /* a caller bounds it as an index, which the compiler would think needless */
	return w;
}

/* Word i of a kind of bits that the row has itself. */
static __always_inline __u64 cell_of(const struct ports *ports, enum rule_bits kind, __u32 i, const bool small)
{
	return ports->cell[small ? kind : kind * RULE_WORDS + i % RULE_WORDS];
}

/* Of those that are met only the rules from the stage on that begins first: at `begin` of word i, or in a later one. */
static __always_inline bool stage_from(struct policy_eval *e, const struct ports *ports, __u32 i, __u64 begin,
				       const bool small)
{
	__u64 later = ports->begins & (~1ULL << i), met;

	if (!begin) {
		if (small || !later)
			return false;
		i = lowest_bit(later) % RULE_WORDS;
		begin = cell_of(ports, RULES_BEGIN, i, small);
	}
	met = e->met[i] & -(begin & -begin);
	e->met[i] = met;
	e->some &= (met ? ~0ULL : ~1ULL) << i;
	return true;
}

/* The first rule that is met, and from one that passes on the next stage's. RULE_NONE: on with the next block. */
static __always_inline __u32 met_verdict(struct policy_eval *e, const struct ports *ports, __u32 block,
					 const bool small)
{
	/* in memory, of which the verifier forgets what it was: it looks at each turn once */
	volatile __u64 *some = &e->some;
	__u64 words, bit, pass;
	__u32 i = 0;

	for (int n = 0; n < MAX_STAGES; n++) {
		words = *some;
		if (!words)
			return RULE_NONE;
		if (!small)
			i = lowest_bit(words) % RULE_WORDS;
		bit = e->met[i];
		bit &= -bit;
		e->rule = block * RULES_PER_BLOCK + i * 64 + lowest_bit(bit);
		pass = cell_of(ports, RULES_PASS, i, small) & bit;
		if (cell_of(ports, RULES_ALLOW, i, small) & bit)
			return pass ? RULE_OPEN : RULE_ALLOW;
		if (!pass)
			return RULE_DENY;
		e->seek = !stage_from(e, ports, i, cell_of(ports, RULES_BEGIN, i, small) & -bit << 1, small);
		if (e->seek)
			return RULE_NONE;
	}
	return RULE_DENY;
}

/* A set of up to 64 rules, as nearly all are: a few lookups and a few words. */
static __always_inline __u32 small_verdict(struct policy_eval *e, const struct ports *ports, const struct bits *bits)
{
	const struct query *q = &e->query;
	__u64 class = class_of(q, ports, q->port), met = 0;

	opaque(class);
	if (class < SMALL_CLASSES)
		met = ports->cell[RULES_CLASS + class];
	met &= bits ? bits->word[0] : ports->cell[RULES_UNKNOWN];
	if (ports->flags & PORTS_OWN) {
		bits = bits_of_own(q, 0);
		met &= bits ? bits->word[0] : 0;
	}
	if (ports->flags & PORTS_SOURCE) {
		bits = bits_of_source(q, 0);
		met &= bits ? bits->word[0] : 0;
	}
	e->met[0] = met;
	e->some = !!met;
	return met_verdict(e, ports, 0, true);
}

/* Rules that both say are met. */
static __noinline void meet(struct policy_eval *e, const __u64 *these, const __u64 *those)
{
	__u64 some = 0, met, negated;

	for (int i = 0; i < RULE_WORDS; i++) {
		met = these[i] & those[i];
		e->met[i] = met;
		negated = -met;
		/* or the compiler makes branches of what has none, and the verifier would follow every combination */
		opaque(negated);
		some |= (met | negated) >> 63 << i;
	}
	e->some = some;
}

/* Any block of a set. */
static __always_inline __u32 block_verdict(struct policy_eval *e, const struct ports *ports, const struct bits *bits,
					   __u32 block)
{
	const struct query *q = &e->query;
	__u32 class = class_of(q, ports, q->port);
	const __u64 *port = &ports->cell[RULES_CLASS * RULE_WORDS],
		    *peer = bits ? bits->word : &ports->cell[RULES_UNKNOWN * RULE_WORDS];

	if (class) {
		bits = class == NO_CLASS ? 0 : bits_of(q, block, DIMENSION_PORT, class);
		if (!bits)
			return RULE_DENY;
		port = bits->word;
	}
	meet(e, port, peer);
	if (ports->flags & PORTS_OWN) {
		bits = bits_of_own(q, block);
		if (!bits)
			return RULE_DENY;
		meet(e, e->met, bits->word);
	}
	if (ports->flags & PORTS_SOURCE) {
		bits = bits_of_source(q, block);
		if (!bits)
			return RULE_DENY;
		meet(e, e->met, bits->word);
	}
	if (e->seek) {
		if (!stage_from(e, ports, 0, cell_of(ports, RULES_BEGIN, 0, false), false))
			return RULE_NONE;
		e->seek = 0;
	}
	return met_verdict(e, ports, block, false);
}

/* What no rule has met. */
static __always_inline __u32 met_none(struct policy_eval *e)
{
	e->rule = NO_RULE; /* nor is it the last that passed */
	return RULE_DENY;
}

/* What a block of the set says. RULE_NONE: on with the next one. */
static __always_inline __u32 block_says(struct policy_eval *e, __u32 block)
{
	struct bits *bits = e->query.peer ? bits_of(&e->query, block, DIMENSION_PEER, e->query.peer) : 0;
	__u32 action = block ? RULE_NONE : sure_verdict(bits, &e->rule);
	struct ports *ports;

	if (action != RULE_NONE)
		return action;
	ports = ports_of(&e->query, block, 0);
	if (!ports)
		return met_none(e);
	action = ports->flags & PORTS_SMALL ? small_verdict(e, ports, bits) : block_verdict(e, ports, bits, block);
	return action == RULE_NONE && block + 1 >= ports->blocks ? met_none(e) : action;
}

/* Of any block but the first, which is most often the only one, and spared a call. Reads and writes s->eval. */
NP_GLOBAL __u32 later_block_says(__u32 block)
{
	struct scratch *s = scratch_take();

	return s ? block_says(&s->eval, block) : RULE_DENY;
}

/* What a set says: one of enum rule_action. Reads s->eval.query, writes the rest of s->eval, where it leaves which rule
 * said it. */
NP_GLOBAL __u32 policy_verdict(void)
{
	struct scratch *s = scratch_take();
	struct policy_eval *e;
	__u32 action;

	if (!s)
		return RULE_DENY;
	e = &s->eval;
	e->rule = NO_RULE;
	e->seek = 0;
	action = block_says(e, 0);
	for (__u32 block = 1; action == RULE_NONE && block < RULE_BLOCKS_MAX; block++)
		action = later_block_says(block);
	return action == RULE_NONE ? met_none(e) : action;
}

/* The number by which the agent knows the rule that decided (policy_verdict). Reads eval. */
static __noinline __u32 rule_number(const struct scratch *s)
{
	struct rule_key k = {};
	__u32 *number;

	k.set = s->eval.query.set;
	k.index = s->eval.rule;
	number = bpf_map_lookup_elem(&np_rules, &k);
	return number ? *number : 0;
}

#endif
