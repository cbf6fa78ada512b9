/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* Structs of services, addresses and interfaces, as rows of maps. Layer: shared by all programs and, through BTF,
 * the agent. */
#ifndef NP_TYPES_LB_H
#define NP_TYPES_LB_H

#include <stddef.h>
#include <linux/types.h>

/* Both families in one type: IPv4 is ::ffff:a.b.c.d. */
struct addr {
	__be32 w[4];
};
_Static_assert(sizeof(struct addr) == 16, "addr");

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
	FRONTEND_NODE_PORT = 1,      /* reached on the node's addresses */
	FRONTEND_EXTERNAL = 2,       /* node port, load balancer or external address */
	FRONTEND_RANGES = 4,         /* only for sources in np_ranges, set `inside.list` */
	FRONTEND_MAGLEV = 8,         /* backends are chosen by np_maglev */
	FRONTEND_INSIDE_LOCAL = 16,  /* `inside` has this node's backends only: none means silence, not refusal */
	FRONTEND_OUTSIDE_LOCAL = 32, /* the same for `outside` */
	FRONTEND_PODS = 64,          /* for what pods send alone: for all else kube-proxy serves it */
	FRONTEND_TUNNEL = 128,       /* with it: a backend has the port where nodes take tunnel packets */
};

/* Backends to choose from. */
struct choice {
	__u64 list;  /* half of the backends' key: hash of namespace/name:port, and of "local" */
	__u32 count; /* backends in slots 0 .. count-1 */
	__u32 pad;
};
_Static_assert(sizeof(struct choice) == 16, "choice");

struct frontend {
	struct choice inside;  /* for this node's pods and processes */
	struct choice outside; /* for whatever comes from the network */
	__u32 flags;           /* enum frontend_flag */
	__u32 affinity;        /* seconds for which a client keeps its backend; 0: each flow for itself */
};
_Static_assert(sizeof(struct frontend) == 40, "frontend");

/* From this slot on a list has what this node has of its backends, also those that get no new flows. By them ICMP
 * errors find flows that another node has begun. */
#define OWN_SLOTS 0x80000000

struct backend_key {
	__u64 list;
	__u32 slot;
	__u32 pad;
};
_Static_assert(sizeof(struct backend_key) == 16, "backend_key");

struct backend {
	struct addr addr;
	struct addr node; /* address of its node, same family; zero: this one, or unknown */
	__be16 port;
	__u16 flags;
	__u32 pad;
};
_Static_assert(sizeof(struct backend) == 40, "backend");

/* Backends that flows may stay with, of UDP ports and of services with affinity: the slots alone do not tell. */
struct live_key {
	__u64 list;
	struct addr addr;
	__be16 port;
	__u8 pad[6];
};
_Static_assert(sizeof(struct live_key) == 32, "live_key");

enum live_flag {
	LIVE_CHOSEN = 1, /* new flows may go there as well: it has a slot */
};

struct live {
	__u32 flags; /* enum live_flag */
	__u32 slot;  /* with LIVE_CHOSEN */
};
_Static_assert(sizeof(struct live) == 8, "live");

struct affinity_key {
	__u64 list;
	struct addr client;
};
_Static_assert(sizeof(struct affinity_key) == 24, "affinity_key");

struct affinity {
	__u64 seen;       /* ns since boot: last flow */
	struct addr addr; /* the backend */
	__be16 port;
	__u8 pad[6];
};
_Static_assert(sizeof(struct affinity) == 32, "affinity");

/* Maglev's table: the slot of the backend for each hash, the same on every node that has the same backends. */
#define MAGLEV_SIZE 16349 /* prime; with 100 times as many as backends, 1 % too many flows move */

struct maglev {
	__u16 slot[MAGLEV_SIZE];
	__u16 pad;
};
_Static_assert(sizeof(struct maglev) == 32700, "maglev");

/* Prefixes, by what they are for. */
enum range_set {
	RANGE_INSIDE = 1,      /* never masqueraded between: pools, pod ranges of nodes; by setting nodes' addresses */
	RANGE_TUNNEL_BACK = 2, /* clients whose answers return through the tunnel although others' do not */
	RANGE_OWN = 3,         /* what the kernel takes for this node beside single addresses, which have rows */
	RANGE_NODE_PORTS = 4,  /* of these, where node ports are served */
};

struct range_key {
	__u32 prefix;  /* bits of what follows: 64 of the set, then of the address (v4: 96 and its own) */
	__be32 set[2]; /* enum range_set, or the list of a service's `inside`; network order */
	struct addr addr;
};
_Static_assert(sizeof(struct range_key) == 28, "range_key");
_Static_assert(offsetof(struct range_key, addr) == 4 + 64 / 8, "range_key.prefix");

/* A prefix of either family: v4 has 96 bits and its own. */
struct net_key {
	__u32 prefix;
	struct addr addr;
};
_Static_assert(sizeof(struct net_key) == 20, "net_key");

/* Where pods of other nodes are, when the network between the nodes does not know them. */
struct route {
	struct addr node; /* in the tunnel to this node */
};
_Static_assert(sizeof(struct route) == 16, "route");

/* ---- addresses and interfaces ------------------------------------------------------------------- */

enum addr_kind {
	ADDR_LOCAL_POD = 1, /* a pod of this node: reached through `ifindex` */
	ADDR_SELF = 2,      /* this node's own */
	ADDR_NODE = 3,      /* another node's: tunnel packets are taken from it */
	ADDR_SERVICE = 4,   /* a service's alone: no host answers on ports that it does not have */
};

enum addr_flag {
	ADDR_NODE_PORTS = 1, /* own address on which node ports are served */
	ADDR_MASQUERADE = 2, /* local pod whose flows to the outside leave with the node's address */
	ADDR_ROUTED = 4,     /* local pod of another CNI plugin, which sees what passes between it and the network */
	ADDR_EXTERNAL = 8,   /* of no kind; a service's from outside, and perhaps a real host's */
};

struct addr_info {
	__u16 kind;     /* enum addr_kind; 0: nothing but an identity is known */
	__u16 flags;    /* enum addr_flag */
	__u32 ifindex;  /* host side of the pod's veth; 0 otherwise */
	__u32 identity; /* by which policy knows the address */
	__u32 pad;
	__u64 ingress;        /* rules for flows to this local pod; 0: all are let in */
	__u64 egress;         /* rules for flows from it */
	__u64 staged_ingress; /* the same as they would be with the staged policies */
	__u64 staged_egress;
};
_Static_assert(sizeof(struct addr_info) == 48, "addr_info");

enum iface_kind {
	IFACE_WORKLOAD = 1,
	IFACE_HOST = 2,
};

struct iface {
	__u32 mtu;
	__u16 kind; /* enum iface_kind */
	__u8 mac[6];
};
_Static_assert(sizeof(struct iface) == 12, "iface");

/* A node of an older version: its end of the tunnel is a device of the kernel, which takes frames for itself alone. */
struct vtep {
	__u8 mac[6];
	__u8 pad[2];
};
_Static_assert(sizeof(struct vtep) == 8, "vtep");

#endif
