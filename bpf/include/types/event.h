/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* What programs tell of flows. Layer: shared by all programs and, through BTF, the agent. */
#ifndef NP_TYPES_EVENT_H
#define NP_TYPES_EVENT_H

#include <stddef.h>
#include "types/conntrack.h"
#include "types/reason.h"

enum event_kind {
	EVENT_OPENED = 1, /* a flow was entered */
	EVENT_DENIED,     /* rules say no to a packet */
	EVENT_ENDED,      /* both ends of a TCP connection have closed it, or one has reset it */
	EVENT_DROPPED,    /* a packet ended for another reason */
	EVENT_MEANT,      /* a socket that got its backend at connect begins: what it meant */
	EVENT_MAX,
};

/* Addresses are zero where they are not known: of packets that could not be read, and of `flow` where no flow was
 * looked for. */
struct flow_event {
	__u64 at;             /* ns since boot */
	struct ct_tuple sent; /* by the end that opens the flow, before translation; without a flow, the packet */
	struct ct_tuple flow; /* the same, to the end that it reaches, behind all translation */
	__u32 egress_rule;    /* the rules that allowed or denied it; 0: none was asked */
	__u32 ingress_rule;
	__u32 staged_egress_rule; /* and those that would decide with the staged policies */
	__u32 staged_ingress_rule;
	__u32 device; /* that it came in by, or leaves by */
	__u16 length; /* of the IP packet */
	__u8 kind;    /* enum event_kind */
	__u8 reason;  /* enum drop */
	__u8 proto;
	__u8 hook; /* enum hook */
	__u8 tunnelled;
	__u8 pad;
	__u16 lane; /* of the entry by which the packet was found */
	__u16 pad2;
};
_Static_assert(sizeof(struct flow_event) == 112, "flow_event");

/* Of each kind so many a while and processor are told: packets that are dropped may come at any rate. */
#define EVENT_WHILE_SHIFT 27 /* of ns: 134 ms */
#define EVENT_DROPS 64

/* A power of two, so that the verifier sees the bound. */
#define EVENT_REASONS 32
_Static_assert(DROP_MAX <= EVENT_REASONS, "reasons of drops");

/* How many were told in this while. */
struct event_budget {
	__u32 when; /* `now` >> EVENT_WHILE_SHIFT */
	__u32 told;
};

#endif
