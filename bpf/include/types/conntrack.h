/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* Structs of flows, sockets and what programs remember. Layer: shared by all programs and, through BTF, the agent. */
#ifndef NP_TYPES_CONNTRACK_H
#define NP_TYPES_CONNTRACK_H

#include <stddef.h>
#include "types/lb.h"

/* ---- flows -------------------------------------------------------------------------------------- */

/* One key for both directions: (lo, lo_port) sorts before (hi, hi_port), words compared as this machine reads them;
 * ICMP echo has its id in both ports. */
struct ct_key {
	struct addr lo, hi;
	__be16 lo_port, hi_port;
	__u8 proto;
	__u8 pad;
	__u16 lane; /* 0; others for flows that have another's addresses and ports, and came another way */
};
_Static_assert(sizeof(struct ct_key) == 40, "ct_key");

/* The addresses and ports a translated packet leaves with. */
struct ct_tuple {
	struct addr src, dst;
	__be16 sport, dport;
};
_Static_assert(sizeof(struct ct_tuple) == 36, "ct_tuple");
_Static_assert(offsetof(struct ct_tuple, dport) == offsetof(struct ct_tuple, sport) + 2, "as they stand in a packet");

enum leg_flag {
	LEG_READY = 1,         /* decided: everything below is valid */
	LEG_NAT = 2,           /* packets of this direction leave as `out` */
	LEG_POD = 4,           /* to the local pod behind `ifindex` */
	LEG_NEIGH = 8,         /* out of the host device `ifindex` */
	LEG_ENCAP = 16,        /* in the tunnel to `via`, out of `ifindex` */
	LEG_STACK = 32,        /* the kernel's own routing takes it on */
	LEG_TUNNELLED = 64,    /* packets of this direction come from the network in the tunnel from `via` alone */
	LEG_DSR = 128,         /* with LEG_ENCAP: the other node is to answer the client itself */
	LEG_ANSWER = 256,      /* the direction of answers: they may come any way but those that cannot be theirs */
	LEG_INNER = 512,       /* seen behind their translation only: a packet that comes so is another flow's */
	LEG_OPENING = 1024,    /* of the end that opens a TCP connection: it has acknowledged nothing yet */
	LEG_SELF = 2048,       /* on its way out, but for this node itself */
	LEG_OVERLAY = 4096,    /* with LEG_ENCAP: because np_routes says so */
	LEG_LATER = 8192,      /* with LEG_STACK: translated, tunnelled at the way out, not where it comes in */
	LEG_BY_TUNNEL = 16384, /* with LEG_INNER: the flow came in the tunnel */
	LEG_BY_NODE = 32768,   /* sent by a local pod or by the node: none from the network is the flow's */
};

/* Who opened a flow, of the direction that was seen first. */
enum met {
	MET_BEGUN = 0,  /* its sender: its beginning was seen, or the kernel's own table says so */
	MET_EITHER = 1, /* its beginning was not seen: either end may have opened it */
	MET_TURNED = 2, /* the other end, as the kernel's own table says */
};

/* What happens to packets of one direction: [0] sent by lo, [1] sent by hi. */
struct ct_leg {
	__u32 ifindex;
	__u16 mtu;    /* longest L3 packet that goes this way */
	__u16 flags;  /* enum leg_flag */
	__u32 ack;    /* last TCP acknowledgement sent this way, host order */
	__u16 window; /* and its window, unscaled */
	__u8 wscale;
	__u8 hook;   /* enum hook, where the flow began; the same in both legs */
	__u64 bytes; /* of IP packets that were sent this way and seen in this entry, while node_state.accounts */
	__u32 packets;
	__u8 met; /* enum met, of the direction that was seen first */
	__u8 pad[3];
};
_Static_assert(sizeof(struct ct_leg) == 32, "ct_leg");

enum ct_state {
	CT_SEEN_LO = 1, /* packets were seen from lo */
	CT_SEEN_HI = 2,
	CT_TCP_OPEN = 4, /* both SYNs acknowledged, or picked up mid-flow */
	CT_FIN_LO = 8,
	CT_FIN_HI = 16,
	CT_RST = 32,
	CT_FOREIGN = 64,  /* made before us by another proxy: the kernel's own */
	CT_BROUGHT = 128, /* the kernel has brought packets of it to a pod, by whichever device */
};

/* A flow that is not translated has one entry. A translated one has two: the client's view (client, service) with
 * the way to the backend, and the backend's view (backend, client) with the way back; each is found from the other
 * by reversing `out`. */
struct ct_value {
	__u64 seen;          /* ns since boot, renewed after CT_FRESH_NS; with jiffies its low 24 bits are theirs */
	struct ct_tuple out; /* for the leg with LEG_NAT */
	__u8 state;          /* enum ct_state */
	__u8 epoch;          /* of the policy that allowed it: low byte of node_state.epoch */
	__u16 lane;          /* of the other entry of a translated flow */
	struct addr via;     /* tunnel peer of the legs with LEG_ENCAP and LEG_TUNNELLED */
	struct ct_leg leg[2];
	__u32 slot;        /* of the backend, in the client's view */
	__u32 egress_rule; /* the rules that allowed it, where an end of it is on this node; 0: none was asked */
	__u32 ingress_rule;
	__u32 staged_egress_rule; /* and those that would decide with the staged policies */
	__u32 staged_ingress_rule;
	__u32 device; /* of the network by which it came, or by which the node sends it; 0: none */
};
_Static_assert(sizeof(struct ct_value) == 152, "ct_value");

/* A TCP connection that is older than our programs, as the kernel's own table has it. */
struct older {
	__u64 until;  /* ns since boot: it is believed no longer */
	__u32 opener; /* who opened it: 0 lo, 1 hi */
	__u32 pad;
};
_Static_assert(sizeof(struct older) == 16, "older");

/* Slots of np_recent, a power of two. */
#define RECENT_FLOWS 65536

/* Of each processor's program at a time, so that they seldom count at once. */
#define RECENT_BLOCK 64

/* What there is to say of a table that is full; one entry. */
struct pressure {
	__u64 full_at; /* ns since boot: when it had no room last, renewed after PRESSURE_NS */
	__u32 blocks;  /* of RECENT_BLOCK slots that programs have taken */
	__u32 pad;
};
_Static_assert(sizeof(struct pressure) == 16, "pressure");

/* Ports of a fragmented datagram, learned from its first fragment. */
struct frag_key {
	struct addr src, dst;
	__be32 id;
	__u8 proto; /* IPv4; of IPv6 the Fragment header's own, for the id alone tells */
	__u8 pad[3];
};
_Static_assert(sizeof(struct frag_key) == 40, "frag_key");

struct frag {
	__be16 sport, dport;
	__u16 heads; /* bytes of the datagram, from its beginning, that no other fragment may write over */
	__u8 proto;
	__u8 pad;
};
_Static_assert(sizeof(struct frag) == 8, "frag");

/* The link-local address that a pod's device has: the one it was heard of first, or a while after another. */
struct link_addr {
	struct addr addr;
	__u64 since; /* ns since boot */
};
_Static_assert(sizeof(struct link_addr) == 24, "link_addr");

/* How long packets to another node may be, as routers on the way have said of the tunnel's. */
struct path {
	__u64 until; /* ns since boot */
	__u32 mtu;
	__u32 pad;
};
_Static_assert(sizeof(struct path) == 16, "path");

/* ---- connect-time load balancing ------------------------------------------------------------------ */

/* Node-wide facts that change while the programs run; one entry. */
struct node_state {
	__u64 takeover_until; /* ns since boot: TCP flows without an entry belong to the proxy before us until then */
	__u32 epoch;          /* grows when rules change: each flow's next packet is judged again */
	__u32 own_prefixes;   /* how many RANGE_OWN has */
	__u32 accounts;       /* packets and bytes of flows are counted */
	__u32 tunnel_device;  /* ifindex: packets enter the tunnel by it; 0: the programs write the tunnel's header */
};
_Static_assert(sizeof(struct node_state) == 24, "node_state");

/* Sockets that mean services: what recvmsg and getpeername show, and which backend sendmsg keeps to. */
enum socket_role {
	SOCKET_MEANT = 0,  /* the key is the backend, the value the service that was meant */
	SOCKET_CHOSEN = 1, /* the key is the service, the value the backend that the socket's datagrams go to */
};

struct socket_key {
	__u64 cookie;
	struct addr addr;
	__be16 port;
	__u8 proto;
	__u8 role; /* enum socket_role */
	__u8 pad[4];
};
_Static_assert(sizeof(struct socket_key) == 32, "socket_key");

struct socket_peer {
	struct addr addr;
	__be16 port;
	__u16 pad;
};
_Static_assert(sizeof(struct socket_peer) == 20, "socket_peer");

#endif
