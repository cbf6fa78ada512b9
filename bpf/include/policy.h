/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* What rules say of a flow: classify it in each dimension, AND the bits, take the first. Knows nothing of Kubernetes. Layer: slow paths. */
#ifndef NP_POLICY_H
#define NP_POLICY_H

#include "scratch.h"

/* Looks within blocks: one for each block and for each tier that a rule passes over. More rules than that let nothing through. */
#define RULE_LOOKS 40
#define NO_RULE 0xffffffff

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

/* The rules of the block whose condition in this dimension a class meets. */
static __always_inline struct bits *bits_of(const struct query *q, __u32 block, __u32 dimension, __u32 class)
{
	struct bits_key k = {};
	struct bits *bits;

	k.set = q->set;
	k.class = class;
	k.block = block;
	k.dimension = dimension;
	bits = bpf_map_lookup_elem(&np_bits, &k);
	if (bits || !class)
		return bits;
	k.class = 0;
	return bpf_map_lookup_elem(&np_bits, &k);
}

/* The same by port. */
static __always_inline struct bits *bits_of_port(const struct query *q, __u32 block, const struct ports *ports, __u32 dimension)
{
	__u64 port = dimension == DIMENSION_PORT ? q->port : q->source_port, high = port >> 8 & 0xff, low = port & 0xff;
	struct page_key k = {};
	struct ports_page *page;
	__u32 class;

	opaque(high);
	if (high > 0xff)
		return 0;
	class = ports->at[high];
	if (class & PORTS_PAGE) {
		k.set = q->set;
		k.page = class & ~PORTS_PAGE;
		page = bpf_map_lookup_elem(&np_pages, &k);
		opaque(low);
		if (!page || low > 0xff)
			return 0;
		class = page->class[low];
	}
	return bits_of(q, block, dimension, class);
}

static __always_inline struct ports *ports_of(const struct query *q, __u32 block, bool source)
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

/* Number of the lowest bit; there is one. Without branches, of which the verifier would follow every combination. */
static __always_inline __u32 lowest_bit(__u64 w)
{
	w = (w & -w) - 1;
	w -= w >> 1 & 0x5555555555555555ULL;
	w = (w & 0x3333333333333333ULL) + (w >> 2 & 0x3333333333333333ULL);
	w = (w + (w >> 4)) & 0x0f0f0f0f0f0f0f0fULL;
	return w * 0x0101010101010101ULL >> 56;
}

/* The first rule from `at` on, in its block, that the flow meets; NO_RULE when there is none. Not static: the verifier then looks
 * at it once, not for each way to it (from 5.6 on). */
__noinline __u32 rule_first(__u32 at)
{
	__u32 block = at / RULES_PER_BLOCK, i = at % RULES_PER_BLOCK / 64;
	__u64 from = ~0ULL << (at & 63);
	struct bits *peer, *own, *port, *source;
	struct scratch *s = scratch_take();
	struct ports *ports, *sources;
	const struct query *q;

	if (!s)
		return NO_RULE;
	q = &s->query;
	ports = ports_of(q, block, false);
	if (!ports)
		return NO_RULE;
	s->blocks = ports->blocks;
	peer = bits_of(q, block, DIMENSION_PEER, q->peer);
	port = bits_of_port(q, block, ports, DIMENSION_PORT);
	own = ports->flags & PORTS_OWN ? bits_of(q, block, DIMENSION_OWN, q->own) : peer;
	source = port;
	if (ports->flags & PORTS_SOURCE) {
		sources = ports_of(q, block, true);
		source = sources ? bits_of_port(q, block, sources, DIMENSION_SOURCE_PORT) : 0;
	}
	if (!peer || !port || !own || !source)
		return NO_RULE;
	for (__u32 n = 0; n < RULE_WORDS && i < ports->words; n++, i++) {
		__u64 w = peer->word[i % RULE_WORDS] & port->word[i % RULE_WORDS] & own->word[i % RULE_WORDS] & source->word[i % RULE_WORDS] & from;

		if (w)
			return block * RULES_PER_BLOCK + i % RULE_WORDS * 64 + lowest_bit(w);
		from = ~0ULL;
	}
	return NO_RULE;
}

/* What the set in the scratch's query says, one of enum rule_action; the rule that decides is left in its `rule`. Not static for the same
 * reason. */
__noinline __u32 policy_verdict(void)
{
	struct scratch *s = scratch_take();
	struct rule_key k = {};
	struct rule *rule;
	__u32 at = 0;

	if (!s)
		return RULE_DENY;
	k.set = s->query.set;
	s->blocks = 0;
	s->rule = 0;
	for (int i = 0; i < RULE_LOOKS; i++) {
		k.index = rule_first(at);
		if (k.index == NO_RULE) {
			at = (at | (RULES_PER_BLOCK - 1)) + 1;
			if (at / RULES_PER_BLOCK >= s->blocks)
				break;
			continue;
		}
		rule = bpf_map_lookup_elem(&np_rules, &k);
		if (!rule)
			break;
		s->rule = rule->id;
		if (rule->action != RULE_PASS)
			return rule->action;
		at = rule->next;
	}
	return RULE_DENY;
}

#endif
