/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* Every map, and every struct that crosses to TypeScript: the single definition. Layer: shared by all programs and, through BTF, the agent. */
#ifndef NP_MAPS_H
#define NP_MAPS_H

#include <linux/types.h>
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include "reason.h"

/* Both families in one type: IPv4 is ::ffff:a.b.c.d. */
struct addr {
	__be32 w[4];
};

/* ---- services ---------------------------------------------------------------------------------- */

/* Where a service is reached. For node ports `addr` is the family's any-address and the packet's own
 * destination only has to be an address of this node (ADDR_SELF). */
struct frontend_key {
	struct addr addr;
	__be16 port;
	__u8 proto;
	__u8 pad;
};
_Static_assert(sizeof(struct frontend_key) == 20, "frontend_key");

enum frontend_flag {
	FRONTEND_NODE_PORT = 1,	/* reached on the node's addresses */
	FRONTEND_EXTERNAL = 2,	/* node port, load balancer or external address */
};

struct frontend {
	__u64 service;		/* first half of the backends' key: hash of namespace/name:port */
	__u32 count;		/* backends in slots 0 .. count-1 */
	__u32 flags;		/* enum frontend_flag */
};
_Static_assert(sizeof(struct frontend) == 16, "frontend");

struct backend_key {
	__u64 service;
	__u32 slot;
	__u32 pad;
};
_Static_assert(sizeof(struct backend_key) == 16, "backend_key");

struct backend {
	struct addr addr;
	struct addr node;	/* address of the node that has it, same family; all zero when it is this one or unknown */
	__be16 port;
	__u16 flags;
	__u32 pad;
};
_Static_assert(sizeof(struct backend) == 40, "backend");

/* ---- addresses and interfaces ------------------------------------------------------------------- */

enum addr_kind {
	ADDR_LOCAL_POD = 1,	/* a pod of this node: reached through `ifindex` */
	ADDR_SELF = 2,		/* this node's own */
	ADDR_NODE = 3,		/* another node's: tunnel packets are taken from it */
};

struct addr_info {
	__u32 kind;		/* enum addr_kind */
	__u32 ifindex;		/* host side of the pod's veth; 0 otherwise */
};
_Static_assert(sizeof(struct addr_info) == 8, "addr_info");

enum iface_kind {
	IFACE_WORKLOAD = 1,
	IFACE_HOST = 2,
};

struct iface {
	__u32 mtu;
	__u16 kind;		/* enum iface_kind */
	__u8 mac[6];
};
_Static_assert(sizeof(struct iface) == 12, "iface");

/* ---- flows -------------------------------------------------------------------------------------- */

/* One key for both directions: (lo, lo_port) sorts before (hi, hi_port), words compared as this machine reads them;
 * ICMP echo has its id in both ports. */
struct ct_key {
	struct addr lo, hi;
	__be16 lo_port, hi_port;
	__u8 proto;
	__u8 pad[3];
};
_Static_assert(sizeof(struct ct_key) == 40, "ct_key");

/* The addresses and ports a translated packet leaves with. */
struct ct_tuple {
	struct addr src, dst;
	__be16 sport, dport;
};
_Static_assert(sizeof(struct ct_tuple) == 36, "ct_tuple");

enum leg_flag {
	LEG_READY = 1,		/* decided: everything below is valid */
	LEG_NAT = 2,		/* packets of this direction leave as `out` */
	LEG_POD = 4,		/* to the local pod behind `ifindex` */
	LEG_NEIGH = 8,		/* out of the host device `ifindex` */
	LEG_ENCAP = 16,		/* in the tunnel to `via`, out of `ifindex` */
	LEG_STACK = 32,		/* the kernel's own routing takes it on */
	LEG_APPROVED = 64,	/* the destination's own hook has agreed: it may be bypassed */
};

/* What happens to packets of one direction: [0] sent by lo, [1] sent by hi. */
struct ct_leg {
	__u32 ifindex;
	__u16 mtu;		/* longest L3 packet that goes this way */
	__u16 flags;		/* enum leg_flag */
	__u32 ack;		/* last TCP acknowledgement sent this way, host order */
	__u16 window;		/* and its window, unscaled */
	__u8 wscale;
	__u8 pad;
};
_Static_assert(sizeof(struct ct_leg) == 16, "ct_leg");

enum ct_state {
	CT_SEEN_LO = 1,		/* packets were seen from lo */
	CT_SEEN_HI = 2,
	CT_TCP_OPEN = 4,	/* both SYNs seen, or picked up mid-flow */
	CT_FIN_LO = 8,
	CT_FIN_HI = 16,
	CT_RST = 32,
};

/* A flow that is not translated has one entry. A translated one has two: the client's view (client, service) with
 * the way to the backend, and the backend's view (backend, client) with the way back; each is found from the other
 * by reversing `out`. */
struct ct_value {
	__u64 seen;		/* ns since boot, refreshed every 0.25 to 2.5 s */
	struct ct_tuple out;	/* for the leg with LEG_NAT */
	__u8 state;		/* enum ct_state */
	__u8 pad[3];
	struct addr via;	/* tunnel peer of the leg with LEG_ENCAP */
	struct ct_leg leg[2];
	__u32 fresh;		/* low half of the kernel's jiffies at that refresh, where programs can read them */
	__u8 reserved[12];	/* policy epochs and rule ids to come; zero */
};
_Static_assert(sizeof(struct ct_value) == 112, "ct_value");

/* Ports of a fragmented datagram, learned from its first fragment. */
struct frag_key {
	struct addr src, dst;
	__be32 id;
	__u8 proto;
	__u8 pad[3];
};
_Static_assert(sizeof(struct frag_key) == 40, "frag_key");

struct frag {
	__be16 sport, dport;
};
_Static_assert(sizeof(struct frag) == 4, "frag");

/* ---- connect-time load balancing ------------------------------------------------------------------ */

/* Which service address a socket meant, so that recvmsg and getpeername show it again. */
struct socket_key {
	__u64 cookie;
	struct addr backend;
	__be16 port;
	__u8 proto;
	__u8 pad[5];
};
_Static_assert(sizeof(struct socket_key) == 32, "socket_key");

struct socket_service {
	struct addr addr;
	__be16 port;
	__u16 pad;
};
_Static_assert(sizeof(struct socket_service) == 20, "socket_service");

/* ---- the maps ------------------------------------------------------------------------------------- */
/* Sizes of those that grow with the cluster are set by the agent before load. Shared maps are pinned by name and
 * reused by every object; what is not preallocated costs memory only for what is in it. */

#define NP_HASH(name, k, v, size)                                                                                   \
	struct {                                                                                                     \
		__uint(type, BPF_MAP_TYPE_HASH);                                                                     \
		__uint(max_entries, size);                                                                           \
		__uint(map_flags, BPF_F_NO_PREALLOC);                                                                \
		__type(key, k);                                                                                      \
		__type(value, v);                                                                                    \
	} name SEC(".maps")

#define NP_LRU(name, k, v, size)                                                                                    \
	struct {                                                                                                     \
		__uint(type, BPF_MAP_TYPE_LRU_HASH);                                                                 \
		__uint(max_entries, size);                                                                           \
		__type(key, k);                                                                                      \
		__type(value, v);                                                                                    \
	} name SEC(".maps")

/* written by the agent, read by all programs */
NP_HASH(np_frontends, struct frontend_key, struct frontend, 65536);
NP_HASH(np_backends, struct backend_key, struct backend, 262144);
NP_HASH(np_addrs, struct addr, struct addr_info, 65536);

#ifndef NP_NO_FLOWS
/* key: ifindex; written by the agent from link events, read by the slow paths */
NP_HASH(np_ifaces, __u32, struct iface, 4096);
/* written and read by the tc programs; bounded by LRU eviction */
NP_LRU(np_ct, struct ct_key, struct ct_value, 512000);
NP_LRU(np_frags, struct frag_key, struct frag, 8192);
#endif
#ifdef NP_SOCKETS
/* written by connect and sendmsg, read by recvmsg and getpeername; bounded by LRU eviction */
NP_LRU(np_sockets, struct socket_key, struct socket_service, 65536);
#endif

/* one slot a drop reason, then one a counter; written by all programs, read by the agent */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, DROP_MAX + COUNT_MAX);
	__type(key, __u32);
	__type(value, __u64);
} np_counters SEC(".maps");

static __always_inline void count_slot(__u32 slot)
{
	__u64 *n = bpf_map_lookup_elem(&np_counters, &slot);

	if (n)
		*n += 1;
}

#endif
