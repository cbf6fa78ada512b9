/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* What differs between kernels, each with the version that brought it. Layer: shared by all programs. */
#ifndef NP_BASE_COMPAT_H
#define NP_BASE_COMPAT_H

#include <linux/bpf.h>
#include <stdbool.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_endian.h>
#include "types/config.h"

#define AF_INET 2
#define AF_INET6 10

/* The loopback device is the first of every network namespace. */
#define NP_LOOPBACK 1

/* The compiler forgets what it knew of the variable, so that the bounds check that follows is really made:
 * verifiers before 5.13 do not draw the conclusions that made it superfluous. For 64-bit variables: of narrower
 * ones a copy is checked. */
#define opaque(variable) asm volatile("" : "+r"(variable))

#define SECOND_NS 1000000000ULL

/* bpf_ktime_get_coarse_ns: 5.11, a third of the price; same clock, one tick late at most. */
static __always_inline __u64 np_now(void)
{
	if (cfg.coarse_clock)
		return bpf_ktime_get_coarse_ns();
	return bpf_ktime_get_ns();
}

/* BPF_F_ADJ_ROOM_ENCAP_L2_ETH came with 5.13; without it the kernel segments by skb->protocol, which is right for
 * us too. */
#define NP_ENCAP_FLAGS(l3, extra) \
	(BPF_F_ADJ_ROOM_FIXED_GSO | (l3) | BPF_F_ADJ_ROOM_ENCAP_L4_UDP | BPF_F_ADJ_ROOM_ENCAP_L2(14 + (extra)))

/* BPF_F_ADJ_ROOM_DECAP_L4_UDP, of 7.3. */
#define NP_DECAP_L4_UDP 0x400

/* For taking a tunnel's header off. A packet that the kernel has merged (GRO) stays marked as tunnelled, and a network
 * card that it leaves by may look for the tunnel: the second flag takes the marks off. */
static __always_inline __u64 decap_flags(void)
{
	return BPF_F_ADJ_ROOM_FIXED_GSO | (cfg.decap_udp ? NP_DECAP_L4_UDP : 0);
}

/* What is fixed when an object is built, for no knob can switch it: -DNP_FLOOR makes the objects for kernels before 5.6
 * (Makefile; *.floor.bpf.o). Beside it there is -DNP_TRACE (base/trace.h), which adds text alone. */
#ifdef NP_FLOOR
enum {
	FOR_FLOOR = true
};
#define NP_GLOBAL static __noinline
#define NP_PART static __noinline
#else
enum {
	FOR_FLOOR = false
};
/* Functions that the verifier looks at once, not for each way to them; they have to return a number. Kernels before 5.6
 * have none. */
#define NP_GLOBAL __noinline
/* Parts of such a function: calls cost a third of a verdict. */
#define NP_PART static __always_inline
#endif

/* What objects for the floor do without: it would be too much for its verifier. */
enum {
	HAS_STAGED_POLICIES = !FOR_FLOOR,
	HAS_JUDGED_ERRORS = !FOR_FLOOR,       /* rules are asked about ICMP errors */
	HAS_PORT_SHARES = !FOR_FLOOR,         /* a client has a share of the ports, and ports come round in order */
	HAS_SYN_IN_PLACE = !FOR_FLOOR,        /* a SYN's options are read where they are */
	RULE_BLOCKS_MAX = FOR_FLOOR ? 1 : 16, /* of RULES_PER_BLOCK, in a line of rules */
	OWN_SLOTS_ASKED = FOR_FLOOR ? 8 : 64, /* by which an ICMP error finds its flow */
};

#endif
