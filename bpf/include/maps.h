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
	FRONTEND_RANGES = 4,	/* only for sources in np_ranges, set `inside.list` */
	FRONTEND_MAGLEV = 8,	/* backends are chosen by np_maglev */
	FRONTEND_INSIDE_LOCAL = 16,	/* `inside` has this node's backends only: none means silence, not refusal */
	FRONTEND_OUTSIDE_LOCAL = 32,	/* the same for `outside` */
};

/* Backends to choose from. */
struct choice {
	__u64 list;		/* first half of the backends' key: hash of namespace/name:port, and of "local" where it is only those */
	__u32 count;		/* backends in slots 0 .. count-1 */
	__u32 pad;
};
_Static_assert(sizeof(struct choice) == 16, "choice");

struct frontend {
	struct choice inside;	/* for this node's pods and processes */
	struct choice outside;	/* for whatever comes from the network */
	__u32 flags;		/* enum frontend_flag */
	__u32 affinity;		/* seconds for which a client keeps its backend; 0: each flow for itself */
};
_Static_assert(sizeof(struct frontend) == 40, "frontend");

struct backend_key {
	__u64 list;
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

/* Backends that flows may stay with, of UDP ports and of services with affinity: the slots alone do not tell. */
struct live_key {
	__u64 list;
	struct addr addr;
	__be16 port;
	__u8 pad[6];
};
_Static_assert(sizeof(struct live_key) == 32, "live_key");

enum live_flag {
	LIVE_CHOSEN = 1,	/* new flows may go there as well: it has a slot */
};

struct live {
	__u32 flags;		/* enum live_flag */
	__u32 slot;		/* with LIVE_CHOSEN */
};
_Static_assert(sizeof(struct live) == 8, "live");

struct affinity_key {
	__u64 list;
	struct addr client;
};
_Static_assert(sizeof(struct affinity_key) == 24, "affinity_key");

struct affinity {
	__u64 seen;		/* ns since boot: last flow */
	struct addr addr;	/* the backend */
	__be16 port;
	__u8 pad[6];
};
_Static_assert(sizeof(struct affinity) == 32, "affinity");

/* Maglev's table: the slot of the backend for each hash, the same on every node that has the same backends. */
#define MAGLEV_SIZE 16349	/* prime; a hundred times as many as backends moves one flow in a hundred too many when one goes */

struct maglev {
	__u16 slot[MAGLEV_SIZE];
	__u16 pad;
};
_Static_assert(sizeof(struct maglev) == 32700, "maglev");

/* Prefixes, by what they are for. */
enum range_set {
	RANGE_INSIDE = 1,	/* sources and destinations that are never masqueraded: pools, and what the settings add */
	RANGE_TUNNEL_BACK = 2,	/* clients whose answers return through the tunnel although others' do not */
};

struct range_key {
	__u32 prefix;		/* bits of what follows: 64 of the set, then of the address (v4: 96 and its own) */
	__be32 set[2];		/* enum range_set, or the list of a service's `inside` for its source ranges; network order */
	struct addr addr;
};
_Static_assert(sizeof(struct range_key) == 28, "range_key");

/* A prefix of either family: v4 has 96 bits and its own. */
struct net_key {
	__u32 prefix;
	struct addr addr;
};
_Static_assert(sizeof(struct net_key) == 20, "net_key");

/* Where pods of other nodes are, when the network between the nodes does not know them. */
struct route {
	struct addr node;	/* in the tunnel to this node */
};
_Static_assert(sizeof(struct route) == 16, "route");

/* ---- addresses and interfaces ------------------------------------------------------------------- */

enum addr_kind {
	ADDR_LOCAL_POD = 1,	/* a pod of this node: reached through `ifindex` */
	ADDR_SELF = 2,		/* this node's own */
	ADDR_NODE = 3,		/* another node's: tunnel packets are taken from it */
	ADDR_SERVICE = 4,	/* a service's: on ports it does not have nobody answers */
};

enum addr_flag {
	ADDR_NODE_PORTS = 1,	/* own address on which node ports are served */
	ADDR_MASQUERADE = 2,	/* local pod whose flows to the outside leave with the node's address */
};

struct addr_info {
	__u16 kind;		/* enum addr_kind; 0: nothing but an identity is known */
	__u16 flags;		/* enum addr_flag */
	__u32 ifindex;		/* host side of the pod's veth; 0 otherwise */
	__u32 identity;		/* whom policy takes it for */
	__u32 pad;
	__u64 ingress;		/* rules for flows to this local pod; 0: all are let in */
	__u64 egress;		/* rules for flows from it */
	__u64 staged_ingress;	/* the same as they would be with the staged policies */
	__u64 staged_egress;
};
_Static_assert(sizeof(struct addr_info) == 48, "addr_info");

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

/* ---- policy ------------------------------------------------------------------------------------- */
/* The rules of an endpoint's direction stand in a line, a *set*, in blocks of 1,024. A condition of a rule is about one *dimension*
 * of the packet. In each dimension packets fall into classes, and each class has a bit for every rule whose condition it meets:
 * the first rule that is met in all dimensions decides. A rule that passes goes on with the next *stage*: tier or profile. */

#define RULE_WORDS 16
#define RULES_PER_BLOCK (RULE_WORDS * 64)

enum dimension {
	DIMENSION_PEER = 0,	/* the class is the identity of the other end's address; where it has no row, `nobody` counts */
	DIMENSION_OWN = 1,	/* the identity of this end's; where it has no row, that of class 0 */
	DIMENSION_PORT = 2,	/* destination port, or ICMP type and code */
	DIMENSION_SOURCE_PORT = 3,
};

struct bits_key {
	__u64 set;
	__u32 class;
	__u16 block;
	__u8 dimension;		/* enum dimension */
	__u8 pad;
};
_Static_assert(sizeof(struct bits_key) == 16, "bits_key");

struct bits {
	__u64 word[RULE_WORDS];
	__u32 sure;		/* the whole set's word on such a peer, whatever else the packet is: rule * 4 + enum rule_action; SURE_NOT */
	__u32 pad;
};
_Static_assert(sizeof(struct bits) == 136, "bits");

#define SURE_NOT 0xffffffff

/* Classes of ports. Where all ports with the same high byte are of one class that is here, else in a page. */
struct ports_key {
	__u64 set;
	__u16 block;
	__u8 proto;		/* 0: any other */
	__u8 source;		/* of source ports */
	__u8 pad[4];
};
_Static_assert(sizeof(struct ports_key) == 16, "ports_key");

enum ports_flag {
	PORTS_SOURCE = 1,	/* source ports matter */
	PORTS_OWN = 2,		/* this end's address matters */
	PORTS_SMALL = 4,	/* one word, and the classes' words are in `cell`, not in np_bits */
};

#define PORTS_PAGE 0x8000	/* the number of a page, not a class */

/* Bits of a block's rules that its row of ports has itself, one kind behind the other: RULE_WORDS of each, in the row of a small set one. */
enum rule_bits {
	RULES_NOBODY = 0,	/* whose condition on the other end an unknown address meets */
	RULES_ALLOW = 1,	/* what they say: allow, pass, both for RULE_OPEN, neither for RULE_DENY */
	RULES_PASS = 2,
	RULES_BEGIN = 3,	/* the first ones of their stages */
	RULES_CLASS = 4,	/* class 0 of ports; in the row of a small set all other classes follow */
};

#define RULE_CELLS (RULE_WORDS * 5)
#define SMALL_CLASSES (RULE_CELLS - 4)

struct ports {
	__u16 blocks;		/* of the set */
	__u8 words;		/* in use in this block's bits */
	__u8 flags;		/* enum ports_flag */
	__u16 begins;		/* words in which a stage begins, a bit each */
	__u8 pad[2];
	__u64 cell[RULE_CELLS];	/* enum rule_bits */
	__u16 at[256];		/* by high byte (ICMP: type) */
};
_Static_assert(sizeof(struct ports) == 1160, "ports");

struct page_key {
	__u64 set;
	__u32 page;
	__u32 pad;
};
_Static_assert(sizeof(struct page_key) == 16, "page_key");

struct ports_page {
	__u16 class[256];	/* by low byte (ICMP: code) */
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
	RULE_OPEN = 3,		/* the end of lines that leave open what they do not speak of: whoever is asked next decides */
};

/* Sets of rules for what passes a device of the node, as the host sees it: ingress is what comes to it. 0: nothing is asked. */
struct host_sets {
	__u64 untracked_ingress; /* asked of every packet by itself, before all others */
	__u64 untracked_egress;
	__u64 early_ingress;	/* before services are translated */
	__u64 forward_ingress;	/* of what neither comes from the node itself nor goes to it */
	__u64 forward_egress;
	__u64 normal_ingress;	/* of what does */
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

enum host_view {
	HOST_REAL = 0,
	HOST_STAGED = 1,	/* as it would be with the staged policies; no row where that is the same */
};

#define UNTRACKED_DEVICES 4096

struct host_key {
	__u32 ifindex;		/* 0: of the node's own processes, whatever device they use */
	__u32 view;		/* enum host_view */
};
_Static_assert(sizeof(struct host_key) == 8, "host_key");

enum failsafe_direction {
	FAILSAFE_IN = 0,
	FAILSAFE_OUT = 1,
	FAILSAFE_V6 = 2,	/* beside them, where the other end's address is such: ::/0 is not 0.0.0.0/0 */
};

/* Ports that policy never cuts: of the node, or of others for the node. */
struct failsafe_key {
	__u32 prefix;		/* bits of what follows: 32, then of the address (v4: 96 and its own) */
	__u8 direction;		/* enum failsafe_direction */
	__u8 proto;
	__be16 port;
	struct addr addr;	/* of the other end */
};
_Static_assert(sizeof(struct failsafe_key) == 24, "failsafe_key");

/* So many ports of each direction are told apart before np_failsafes is asked, by port % FAILSAFE_PORTS. */
#define FAILSAFE_PORTS 1024
#define FAILSAFE_SLOTS (2 * FAILSAFE_PORTS)

/* ---- flows -------------------------------------------------------------------------------------- */

/* One key for both directions: (lo, lo_port) sorts before (hi, hi_port), words compared as this machine reads them;
 * ICMP echo has its id in both ports. */
struct ct_key {
	struct addr lo, hi;
	__be16 lo_port, hi_port;
	__u8 proto;
	__u8 pad;
	__u16 lane;		/* 0; others for flows that came another way with addresses and ports that a flow has already */
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
	LEG_TUNNELLED = 64,	/* packets of this direction come in the tunnel from `via` */
	LEG_DSR = 128,		/* with LEG_ENCAP: the other node is to answer the client itself */
	LEG_ANSWER = 256,	/* the direction of answers: they may come any way */
	LEG_INNER = 512,	/* these packets are seen behind their translation only: whoever sends such is another flow */
	LEG_HALF = 1024,	/* open only when the client says so, for its answers do not pass here */
	LEG_SELF = 2048,	/* on its way out, but for this node itself */
	LEG_OVERLAY = 4096,	/* with LEG_ENCAP: because np_routes says so */
};

/* What happens to packets of one direction: [0] sent by lo, [1] sent by hi. */
struct ct_leg {
	__u32 ifindex;
	__u16 mtu;		/* longest L3 packet that goes this way */
	__u16 flags;		/* enum leg_flag */
	__u32 ack;		/* last TCP acknowledgement sent this way, host order */
	__u16 window;		/* and its window, unscaled */
	__u8 wscale;
	__u8 hook;		/* enum hook, where the flow began; the same in both legs */
};
_Static_assert(sizeof(struct ct_leg) == 16, "ct_leg");

enum ct_state {
	CT_SEEN_LO = 1,		/* packets were seen from lo */
	CT_SEEN_HI = 2,
	CT_TCP_OPEN = 4,	/* both SYNs seen, or picked up mid-flow */
	CT_FIN_LO = 8,
	CT_FIN_HI = 16,
	CT_RST = 32,
	CT_FOREIGN = 64,	/* made before us by another proxy: the kernel's own */
};

/* A flow that is not translated has one entry. A translated one has two: the client's view (client, service) with
 * the way to the backend, and the backend's view (backend, client) with the way back; each is found from the other
 * by reversing `out`. */
struct ct_value {
	__u64 seen;		/* ns since boot, refreshed every 0.25 to 2.5 s; where programs can read jiffies the low 24 bits are theirs */
	struct ct_tuple out;	/* for the leg with LEG_NAT */
	__u8 state;		/* enum ct_state */
	__u8 epoch;		/* of the policy that let it be: low byte of node_state.epoch */
	__u16 lane;		/* of the other entry of a translated flow */
	struct addr via;	/* tunnel peer of the leg with LEG_ENCAP */
	struct ct_leg leg[2];
	__u32 slot;		/* of the backend, in the client's view */
	__u32 egress_rule;	/* the rules that let it be, where an end of it is on this node; 0: none was asked */
	__u32 ingress_rule;
	__u32 staged_egress_rule; /* and those that would decide with the staged policies */
	__u32 staged_ingress_rule;
	__u32 device;		/* of the network by which it came, or by which what the node itself sends leaves; 0: none */
};
_Static_assert(sizeof(struct ct_value) == 120, "ct_value");

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

/* Node-wide facts that change while the programs run; one entry. */
struct node_state {
	__u64 takeover_until;	/* ns since boot: TCP flows without an entry belong to the proxy before us until then */
	__u32 epoch;		/* grows when rules change: each flow's next packet is judged again */
	__u32 pad;
};
_Static_assert(sizeof(struct node_state) == 16, "node_state");

/* Sockets that mean services: what recvmsg and getpeername show, and which backend sendmsg keeps to. */
enum socket_role {
	SOCKET_MEANT = 0,	/* the key is the backend, the value the service that was meant */
	SOCKET_CHOSEN = 1,	/* the key is the service, the value the backend that the socket's datagrams go to */
};

struct socket_key {
	__u64 cookie;
	struct addr addr;
	__be16 port;
	__u8 proto;
	__u8 role;		/* enum socket_role */
	__u8 pad[4];
};
_Static_assert(sizeof(struct socket_key) == 32, "socket_key");

struct socket_peer {
	struct addr addr;
	__be16 port;
	__u16 pad;
};
_Static_assert(sizeof(struct socket_peer) == 20, "socket_peer");

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

#define NP_ARRAY(name, v, size)                                                                                     \
	struct {                                                                                                     \
		__uint(type, BPF_MAP_TYPE_ARRAY);                                                                    \
		__uint(max_entries, size);                                                                           \
		__type(key, __u32);                                                                                  \
		__type(value, v);                                                                                    \
	} name SEC(".maps")

#define NP_TRIE(name, k, v, size)                                                                                   \
	struct {                                                                                                     \
		__uint(type, BPF_MAP_TYPE_LPM_TRIE);                                                                 \
		__uint(max_entries, size);                                                                           \
		__uint(map_flags, BPF_F_NO_PREALLOC);                                                                \
		__type(key, k);                                                                                      \
		__type(value, v);                                                                                    \
	} name SEC(".maps")

/* written by the agent, read by all programs */
NP_HASH(np_frontends, struct frontend_key, struct frontend, 65536);
NP_HASH(np_backends, struct backend_key, struct backend, 262144);
NP_HASH(np_addrs, struct addr, struct addr_info, 65536);
NP_HASH(np_live, struct live_key, struct live, 65536);

#ifndef NP_NO_FLOWS
/* key: ifindex; written by the agent from link events, read by the slow paths */
NP_HASH(np_ifaces, __u32, struct iface, 4096);
/* written and read by the tc programs; bounded by LRU eviction */
NP_LRU(np_ct, struct ct_key, struct ct_value, 512000);
NP_LRU(np_frags, struct frag_key, struct frag, 4096);
NP_LRU(np_affinity, struct affinity_key, struct affinity, 16384);
/* written by the agent */
/* key: list */
NP_HASH(np_maglev, __u64, struct maglev, 4096);
NP_TRIE(np_ranges, struct range_key, __u32, 65536);
NP_TRIE(np_routes, struct net_key, struct route, 65536);
/* identities of addresses that np_addrs does not have */
NP_TRIE(np_nets, struct net_key, __u32, 65536);
NP_HASH(np_bits, struct bits_key, struct bits, 65536);
NP_HASH(np_ports, struct ports_key, struct ports, 16384);
NP_HASH(np_pages, struct page_key, struct ports_page, 32768);
/* by what number the agent knows a rule */
NP_HASH(np_rules, struct rule_key, __u32, 65536);
NP_HASH(np_hosts, struct host_key, struct host_sets, 1024);
/* key: ifindex, of devices that fit; value: untracked_ingress as np_hosts has it, for XDP has no time to look there */
NP_ARRAY(np_untracked, __u64, UNTRACKED_DEVICES);
/* the value counts for nothing */
NP_TRIE(np_failsafes, struct failsafe_key, __u32, 1024);
/* key: enum failsafe_direction * FAILSAFE_PORTS + port % FAILSAFE_PORTS; value: 0 where np_failsafes has none such */
NP_ARRAY(np_spared, __u32, FAILSAFE_SLOTS);
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct node_state);
} np_state SEC(".maps");
#endif
#ifdef NP_SOCKETS
/* written by connect and sendmsg, read by sendmsg, recvmsg and getpeername; bounded by LRU eviction */
NP_LRU(np_sockets, struct socket_key, struct socket_peer, 32768);
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
