/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* Structs of policy, as rows of maps. Layer: shared by all programs and, through BTF, the agent. */
#ifndef NP_TYPES_POLICY_H
#define NP_TYPES_POLICY_H

#include <stddef.h>
#include "types/lb.h"

/* The rules of an endpoint's direction stand in a line, a *set*, in blocks of 1,024. A condition of a rule is about
 * one *dimension* of the packet. In each dimension packets fall into classes, and each class has a bit for every
 * rule whose condition it meets: the first rule that is met in all dimensions decides. A rule that passes goes on
 * with the next *stage*: tier or profile. */

#define RULE_WORDS 16
#define RULES_PER_BLOCK (RULE_WORDS * 64)

enum dimension {
	DIMENSION_PEER = 0, /* the identity of the other end's address; where it has no row, RULES_UNKNOWN */
	DIMENSION_OWN = 1,  /* the identity of this end's; where it has no row, that of class 0 */
	DIMENSION_PORT = 2, /* destination port, or ICMP type and code */
	DIMENSION_SOURCE_PORT = 3,
};

struct bits_key {
	__u64 set;
	__u32 class;
	__u16 block;
	__u8 dimension; /* enum dimension */
	__u8 pad;
};
_Static_assert(sizeof(struct bits_key) == 16, "bits_key");

struct bits {
	__u64 word[RULE_WORDS];
	__u32 sure; /* the set's word on such a peer in all packets: rule * 4 + enum rule_action; SURE_NOT */
	__u32 pad;
};
_Static_assert(sizeof(struct bits) == 136, "bits");

#define SURE_NOT 0xffffffff

/* Classes of ports. Where all ports with the same high byte are of one class that is here, else in a page. */
struct ports_key {
	__u64 set;
	__u16 block;
	__u8 proto;  /* 0: any other */
	__u8 source; /* of source ports */
	__u8 pad[4];
};
_Static_assert(sizeof(struct ports_key) == 16, "ports_key");

enum ports_flag {
	PORTS_SOURCE = 1, /* source ports matter */
	PORTS_OWN = 2,    /* this end's address matters */
	PORTS_SMALL = 4,  /* one word, and the classes' words are in `cell`, not in np_bits */
};

#define PORTS_PAGE 0x8000 /* the number of a page, not a class */

/* Bits of a block's rules that its row of ports has itself, one kind behind the other: RULE_WORDS of each, in the
 * row of a small set one. */
enum rule_bits {
	RULES_UNKNOWN = 0, /* whose condition on the other end an unknown address meets */
	RULES_ALLOW = 1,   /* what they say: allow, pass, both for RULE_OPEN, neither for RULE_DENY */
	RULES_PASS = 2,
	RULES_BEGIN = 3, /* the first ones of their stages */
	RULES_CLASS = 4, /* class 0 of ports; in the row of a small set all other classes follow */
};

#define RULE_CELLS (RULE_WORDS * 5)
#define SMALL_CLASSES (RULE_CELLS - 4)
_Static_assert(RULE_CELLS == RULE_WORDS * (RULES_CLASS + 1), "a kind of bits behind the other");
_Static_assert(SMALL_CLASSES == RULE_CELLS - RULES_CLASS, "classes of a small set from RULES_CLASS on");

struct ports {
	__u16 blocks; /* of the set */
	__u8 words;   /* in use in this block's bits */
	__u8 flags;   /* enum ports_flag */
	__u16 begins; /* words in which a stage begins, a bit each */
	__u8 pad[2];
	__u64 cell[RULE_CELLS]; /* enum rule_bits */
	__u16 at[256];          /* by high byte (ICMP: type) */
};
_Static_assert(sizeof(struct ports) == 1160, "ports");
_Static_assert(RULE_WORDS <= 8 * sizeof(((struct ports *)0)->begins), "a bit for each word");

struct page_key {
	__u64 set;
	__u32 page;
	__u32 pad;
};
_Static_assert(sizeof(struct page_key) == 16, "page_key");

struct ports_page {
	__u16 class[256]; /* by low byte (ICMP: code) */
};
_Static_assert(sizeof(struct ports_page) == 512, "ports_page");

struct rule_key {
	__u64 set;
	__u32 index;
	__u32 pad;
};
_Static_assert(sizeof(struct rule_key) == 16, "rule_key");

enum rule_action {
	RULE_DENY = 0,
	RULE_ALLOW = 1,
	RULE_PASS = 2,
	RULE_OPEN = 3, /* left open: the next that is asked decides */
};
_Static_assert(RULE_OPEN < 4, "bits.sure has two bits for it");

/* The highest byte of a rule's number, where the rule holds for what a pod sends to itself by a service as well. */
#define RULE_OF_CLUSTER 255

/* Sets of rules for what passes a device of the node, as the host sees it: ingress is what comes to it. 0: nothing
 * is asked. */
struct host_sets {
	__u64 untracked_ingress; /* asked of every packet by itself, before all others */
	__u64 untracked_egress;
	__u64 early_ingress;   /* before services are translated */
	__u64 forward_ingress; /* of what neither comes from the node itself nor goes to it */
	__u64 forward_egress;
	__u64 normal_ingress; /* of what does */
	__u64 normal_egress;
};
_Static_assert(sizeof(struct host_sets) == 56, "host_sets");

/* the same as numbers of its fields */
enum host_slot {
	HOST_UNTRACKED_INGRESS = 0,
	HOST_UNTRACKED_EGRESS = 1,
	HOST_EARLY_INGRESS = 2,
	HOST_FORWARD_INGRESS = 3,
	HOST_FORWARD_EGRESS = 4,
	HOST_NORMAL_INGRESS = 5,
	HOST_NORMAL_EGRESS = 6,
};

_Static_assert(offsetof(struct host_sets, untracked_ingress) == HOST_UNTRACKED_INGRESS * sizeof(__u64), "host_slot");
_Static_assert(offsetof(struct host_sets, untracked_egress) == HOST_UNTRACKED_EGRESS * sizeof(__u64), "host_slot");
_Static_assert(offsetof(struct host_sets, early_ingress) == HOST_EARLY_INGRESS * sizeof(__u64), "host_slot");
_Static_assert(offsetof(struct host_sets, forward_ingress) == HOST_FORWARD_INGRESS * sizeof(__u64), "host_slot");
_Static_assert(offsetof(struct host_sets, forward_egress) == HOST_FORWARD_EGRESS * sizeof(__u64), "host_slot");
_Static_assert(offsetof(struct host_sets, normal_ingress) == HOST_NORMAL_INGRESS * sizeof(__u64), "host_slot");
_Static_assert(offsetof(struct host_sets, normal_egress) == HOST_NORMAL_EGRESS * sizeof(__u64), "host_slot");
_Static_assert(sizeof(struct host_sets) == (HOST_NORMAL_EGRESS + 1) * sizeof(__u64), "a host_slot each");

enum host_view {
	HOST_REAL = 0,
	HOST_STAGED = 1, /* as it would be with the staged policies; no row where that is the same */
};

#define UNTRACKED_DEVICES 4096

struct host_key {
	__u32 ifindex; /* 0: of the node's own processes, whatever device they use */
	__u32 view;    /* enum host_view */
};
_Static_assert(sizeof(struct host_key) == 8, "host_key");

enum failsafe_direction {
	FAILSAFE_IN = 0,
	FAILSAFE_OUT = 1,
	FAILSAFE_V6 = 2, /* beside them, where the other end's address is such: ::/0 is not 0.0.0.0/0 */
};

/* Ports that policy never cuts: of the node, or of others for the node. */
struct failsafe_key {
	__u32 prefix;   /* bits of what follows: 32, then of the address (v4: 96 and its own) */
	__u8 direction; /* enum failsafe_direction */
	__u8 proto;
	__be16 port;
	struct addr addr; /* of the other end */
};
_Static_assert(sizeof(struct failsafe_key) == 24, "failsafe_key");
_Static_assert(offsetof(struct failsafe_key, addr) == 4 + 32 / 8, "failsafe_key.prefix");

/* Slots of each direction in np_spared, by port % FAILSAFE_PORTS: np_failsafes is asked only where the slot is set. */
#define FAILSAFE_PORTS 1024
#define FAILSAFE_SLOTS (2 * FAILSAFE_PORTS)
_Static_assert(FAILSAFE_SLOTS == (FAILSAFE_OUT + 1) * FAILSAFE_PORTS, "slots of both directions");

#endif
