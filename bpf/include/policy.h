/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* What rules say of a flow: classify it in each dimension, AND the bits, take the first. Knows nothing of Kubernetes. Layer: slow paths. */
#ifndef NP_POLICY_H
#define NP_POLICY_H

#include "scratch.h"

#define NO_RULE 0xffffffff
/* Stages that may begin in one block: whoever passes more of them is let through by nothing. */
#define MAX_STAGES 16
/* Beside enum rule_action: nothing is said yet. */
#define RULE_NONE 4

/* Whom policy takes an address for that has no row of its own, or one that says nothing. */
static __noinline __u32 identity_by_net(const struct addr *a)
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
static __noinline __u32 class_of(const struct query *q, const struct ports *ports, __u32 number)
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

static __noinline struct ports *ports_of(const struct query *q, __u32 block, __u32 source)
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
static __noinline struct bits *bits_of_source(const struct query *q, __u32 block)
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
	return w * 0x0101010101010101ULL >> 56;
}

static __always_inline const struct rule_word *rules_of(const struct ports *ports, __u32 word)
{
	return (const struct rule_word *)ports->cell + word;
}

static __always_inline __u32 action_of(const struct rule_word *rules, __u64 bit)
{
	return (rules->allow & bit ? RULE_ALLOW : RULE_DENY) | (rules->pass & bit ? RULE_PASS : 0);
}

/* Goes on from rule to rule of the block, of all of whose words `met` is the one it has come to. RULE_NONE: on with the next word. */
static __always_inline __u32 word_verdict(struct scratch *s, const struct rule_word *rules, __u64 met, __u32 number)
{
	__u32 action;
	__u64 bit;

	if (s->seek) {
		bit = rules->begin & s->from;
		if (!bit)
			return RULE_NONE;
		s->from = -(bit & -bit);
		s->seek = 0;
	}
	bit = met & s->from;
	bit &= -bit;
	if (!bit)
		return RULE_NONE;
	action = action_of(rules, bit);
	if (action == RULE_PASS) {
		s->seek = 1;
		s->from = -bit << 1;
	}
	s->rule = number + lowest_bit(bit);
	return action;
}

/* A set of up to 64 rules, as nearly all are: a few lookups and a few words. */
static __always_inline __u32 small_verdict(struct scratch *s, const struct ports *ports)
{
	const struct query *q = &s->query;
	__u64 class = class_of(q, ports, q->port), met = 0;
	struct bits *bits = 0;
	__u32 action;

	opaque(class);
	if (class < SMALL_CLASSES)
		met = ports->cell[4 + class];
	if (q->peer)
		bits = bits_of(q, 0, DIMENSION_PEER, q->peer);
	met &= bits ? bits->word[0] : rules_of(ports, 0)->nobody;
	if (ports->flags & PORTS_OWN) {
		bits = bits_of_own(q, 0);
		met &= bits ? bits->word[0] : 0;
	}
	if (ports->flags & PORTS_SOURCE) {
		bits = bits_of_source(q, 0);
		met &= bits ? bits->word[0] : 0;
	}
	s->from = ~0ULL;
	for (int i = 0; i < MAX_STAGES; i++) {
		action = word_verdict(s, rules_of(ports, 0), met, 0);
		if (action != RULE_PASS)
			return action;
	}
	return RULE_DENY;
}

/* Any block of a set. Where it has come to is kept in memory, of which the verifier forgets what it was: it looks at each turn once. */
static __always_inline __u32 block_verdict(struct scratch *s, const struct ports *ports, __u32 block)
{
	const struct query *q = &s->query;
	volatile __u32 *word = &s->word;
	volatile __u64 *hit = &s->hit;
	struct bits *peer = 0, *port, *own, *source;
	__u32 class = class_of(q, ports, q->port), action, i;
	__u64 met;

	port = class == NO_CLASS ? 0 : bits_of(q, block, DIMENSION_PORT, class);
	if (!port)
		return RULE_DENY;
	own = source = port;
	if (ports->flags & PORTS_OWN)
		own = bits_of_own(q, block);
	if (ports->flags & PORTS_SOURCE)
		source = bits_of_source(q, block);
	if (!own || !source)
		return RULE_DENY;
	if (q->peer)
		peer = bits_of(q, block, DIMENSION_PEER, q->peer);
	*hit = peer ? ~0ULL : 0;
	if (!peer)
		peer = port;
	*word = 0;
	s->from = ~0ULL;
	for (int n = 0; n < RULE_WORDS + MAX_STAGES; n++) {
		i = *word;
		if (i >= ports->words || i >= RULE_WORDS)
			return RULE_NONE;
		met = *hit;
		met = (peer->word[i] & met) | (rules_of(ports, i)->nobody & ~met);
		met &= port->word[i] & own->word[i] & source->word[i];
		action = word_verdict(s, rules_of(ports, i), met, block * RULES_PER_BLOCK + i * 64);
		if (action != RULE_NONE && action != RULE_PASS)
			return action;
		if (action == RULE_NONE) {
			*word = i + 1;
			s->from = ~0ULL;
		}
	}
	return RULE_DENY;
}

/* What the set in the scratch's query says: one of enum rule_action. Which rule said it is left there as well. */
NP_GLOBAL __u32 policy_verdict(void)
{
	struct scratch *s = scratch_take();
	struct ports *ports;
	__u32 action;

	if (!s)
		return RULE_DENY;
	s->rule = NO_RULE;
	s->seek = 0;
	for (__u32 block = 0; block < NP_RULE_BLOCKS; block++) {
		ports = ports_of(&s->query, block, 0);
		if (!ports)
			break;
		action = ports->flags & PORTS_SMALL ? small_verdict(s, ports) : block_verdict(s, ports, block);
		if (action != RULE_NONE)
			return action;
		if (block + 1 >= ports->blocks)
			break;
	}
	return RULE_DENY;
}

/* The number by which the agent knows the rule that decided. */
static __noinline __u32 rule_number(struct scratch *s)
{
	struct rule_key k = {};
	__u32 *number;

	k.set = s->query.set;
	k.index = s->rule;
	number = bpf_map_lookup_elem(&np_rules, &k);
	return number ? *number : 0;
}

#endif
