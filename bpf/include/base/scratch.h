/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* What a slow path works with: too big for the stack, so one per CPU. Layer: slow paths. */
#ifndef NP_BASE_SCRATCH_H
#define NP_BASE_SCRATCH_H

#include "l3/forward.h"

#define QUOTE_MAX 68 /* an ICMP error quotes this much of the packet at most */

/* A flow's first packet as one of its ends and that end's rules see it. */
struct query {
	__u64 set;
	__u32 peer; /* identity */
	__u32 pad_peer;
	struct addr own; /* this end's address, of which rules seldom ask */
	__u16 port;      /* destination port, or ICMP type and code */
	__u16 source_port;
	__u8 proto;
	__u8 pad[3];
};

/* What a SYN offers. */
struct syn_options {
	__u16 mss_at; /* offset of the MSS value in the packet; 0: not offered */
	__u16 mss;
	__u8 wscale;
	__u8 pad[3];
};

/* The flow that is asked about. */
struct judged {
	struct ct_tuple before; /* as it comes */
	struct ct_tuple t;      /* from the one that opens it to the one that it reaches, behind all translation */
	__u32 hook;             /* enum hook, where it began */
	__u32 device;           /* of the network by which it came, or by which the node sends it; 0: none */
	__u32 way_out;          /* of the network by which it is forwarded; 0: none */
	__u32 by_answer;        /* the packet at hand is an answer of it */
	__u32 tunnelled;        /* it came in the tunnel */
	__u32 by_node;          /* where it left, the node itself sent its packets */
	__u32 proxied;          /* another proxy's: what goes to the node by it goes on */
	__u32 met;              /* enum met: of which direction rules are asked */
	/* the rules that decide, and that would with the staged policies; 0: none was asked */
	__u32 egress_rule, ingress_rule, staged_egress_rule, staged_ingress_rule;
};

/* What an IPv6 packet's extension headers lead to. */
struct chain {
	__u16 l4;      /* offset of the transport header */
	__u16 start;   /* of what a Fragment header is about; 0: there is none */
	__be16 offset; /* as it stands there */
	__u8 proto;
	__u8 pad;
	__be32 id;
};

/* While headers are read. */
struct header_walk {
	struct frag_key frag; /* of a fragment: its datagram */
	struct chain chain;
	__u32 heads; /* of the first fragment: bytes of the datagram that are headers */
};

/* While a set of rules is asked (policy_verdict); `rule` is there afterwards. */
struct policy_eval {
	struct query query;
	__u64 some;            /* words of `met` that are not zero, a bit each */
	__u64 met[RULE_WORDS]; /* rules of the block that are met, of those that still count */
	__u32 rule;            /* the number in its line of the rule that decided; NO_RULE */
	__u32 seek;            /* a rule passed: on with the next stage */
};

/* The packet an error quotes. */
struct quoted {
	struct ct_tuple t; /* reversed: it finds the flow the way an answer of the error's sender would */
	__u16 l4;          /* offset of its transport header */
	__u8 proto;
	__u8 has_ends; /* its addresses are there, whatever else is not */
};

/* From the way of a flow to its entries in the table, and until its packet is sent. */
struct flow_draft {
	struct ct_value v;      /* the entry being made; of a flow that is there a copy, by which the packet is sent */
	struct ct_key peer_key; /* its peer: the way back of a translated flow */
	struct ct_value peer;
};

/* While a full table makes room. */
struct eviction {
	struct ct_key victim; /* of a flow that is looked at, or goes */
	__u32 idle;           /* slot of np_recent: of the flows of both ends the one that has been idle longest */
	__u32 found;          /* flows of both ends */
	__u64 seen;           /* when the one at `idle` had its last packet */
};

/* While an answer is made to what is dropped, or asked of the pods' gateway. */
struct answer {
	struct addr from; /* source of an ICMP error */
	__u8 pad[2];      /* so that what follows the Ethernet header is aligned */
	__u8 buf[14 + 40 + 8 + QUOTE_MAX + 2];
};

/* By lifetime. All may read what the fast path hands over, `now`, `told`, and `dir` of a packet of a flow. What else a
 * function takes from here, or leaves here, stands in its comment: reads, writes. */
struct scratch {
	/* what the fast path hands over (fast_to_slow) */
	struct pkt p;
	__u32 hook;
	struct addr tunnel_from; /* with p.tunnelled */
	struct origin origin;    /* with p.origin */
	__u8 parsed;             /* p is complete */
	__u8 known_miss;         /* the fast path found no flow */

	/* what the slow path finds out of the packet; slow_path begins with none of it */
	__u8 reroute;        /* the kernel routed the packet to a service address: its way is another now */
	__u8 first_fragment; /* of the datagram `walk.frag`, whose others have no ports */
	__u8 alone;          /* of no flow: ICMP that is about none of ours, or what is sent to all */
	__u8 renew;          /* the flow's leg is due to be decided again: routes, MTUs and pods change */
	__u8 told;           /* translated by this node before: the packet's flow is still the one that it was then */
	__u8 by_other;       /* of a flow that is there, by another device than it was */
	__u8 is_judged;      /* `judged` is of the packet's own flow */
	__u32 mtu;           /* of the way ahead, for the sender to know */
	__u64 now;

	/* its flow, by address and port (flow_packet, icmp_related) */
	struct ct_key key;
	__u32 dir;
	/* what is known of its ends, or of those of the flow that is judged; kind 0: nothing */
	struct addr_info dst, src;

	/* for one step each */
	struct header_walk walk;
	struct judged judged;   /* from judged_new or judged_again to flow_judge */
	struct judged unturned; /* while the other direction of the same is judged */
	struct policy_eval eval;
	struct quoted quoted; /* icmp_related */
	struct flow_draft draft;
	struct bpf_fib_lookup fib; /* one look at the routing table */
	struct syn_options syn;    /* written by syn_options */
	struct answer answer;
	struct eviction eviction;
	struct flow_event event;

	/* from packet to packet */
	struct event_budget budget[EVENT_REASONS];
	__u64 full_until;  /* ns since boot: this program found no room in the flow table a short while before */
	__u32 recent_at;   /* in np_recent, the next slot of this program's block */
	__u32 recent_left; /* of it */
	__u32 recent_free; /* 1 + slot of the flow that went last, which the next one takes; 0: that one has */
	__u32 recent_dead; /* the same of a slot whose flow was gone when it was looked at */
};

/* Written and read within one packet's programs, each object's own. Nothing on this CPU runs them meanwhile: where
 * packets come in and where they leave soft interrupts are off. Real-time kernels that let one packet interrupt
 * another are refused (agent/node/facts.ts), and programs of sockets, which processes run, must do without. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct scratch);
} np_scratch SEC(".maps");

static __always_inline struct scratch *scratch_take(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&np_scratch, &zero);
}

#endif
