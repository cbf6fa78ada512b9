/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* Read-only knobs, set by name before load. Layer: shared by all programs. */
#ifndef NP_TYPES_CONFIG_H
#define NP_TYPES_CONFIG_H

#include "types/reason.h"
#include "types/policy.h"
#include "types/conntrack.h"
#include "types/event.h"

/* From 5.5 on the verifier folds these and prunes what they switch off; before, they are ordinary loads and the
 * addon has replaced calls of missing helpers, so the same object still loads. */
struct node_cfg {
	struct addr node_v4; /* this node's address, source of tunnel packets and ICMP errors; zero: none */
	struct addr node_v6;
	struct addr gateway_v4; /* the pods' gateway, answered for by us */
	struct addr gateway_v6;
	__u64 timeout_tcp_syn; /* ns */
	__u64 timeout_tcp_open;
	__u64 timeout_tcp_fin;
	__u64 timeout_tcp_rst;
	__u64 timeout_udp;        /* one direction seen */
	__u64 timeout_udp_stream; /* both seen */
	__u64 timeout_icmp;
	__u64 netns;         /* cookie of the node's network namespace; 0: it is the first one */
	__u32 fresh_jiffies; /* how long a flow goes without a closer look, in jiffies */
	__u32 tunnel_vni;
	__u32 recent_mask; /* of np_recent's slots that are used: no more than half of the flow table */
	__be16 tunnel_port;
	__u16 nat_port_min; /* source ports for flows that need another than their own */
	__u16 nat_port_count;
	__u8 redirect_peer;   /* kernel has bpf_redirect_peer (5.10) */
	__u8 redirect_neigh;  /* kernel has bpf_redirect_neigh (5.10) */
	__u8 coarse_clock;    /* kernel has bpf_ktime_get_coarse_ns (5.11) */
	__u8 jiffies;         /* kernel has bpf_jiffies64 (5.6) */
	__u8 decap_udp;       /* kernel has BPF_F_ADJ_ROOM_DECAP_L4_UDP (7.3) */
	__u8 netns_cookies;   /* kernel has bpf_get_netns_cookie for sockets that connect (5.7) */
	__u8 connect_udp;     /* connect-time load balancing for UDP as well */
	__u8 connect_tcp;     /* connect-time load balancing for TCP */
	__u8 dsr;             /* backends on other nodes answer clients outside themselves */
	__u8 source_check;    /* enum source_check, for packets from the network */
	__u8 stray_service;   /* enum stray_service */
	__u8 overlay;         /* np_routes has entries to look for */
	__u8 host_policy;     /* np_hosts has */
	__u8 untracked;       /* some of them have rules for every packet */
	__u8 pod_to_host;     /* enum pod_to_host */
	__u8 cluster_policy;  /* some rules are asked of what pods send to themselves by a service */
	__u8 tunnel_class;    /* the bits of the inner packet's traffic class that its tunnel header has */
	__u8 vteps;           /* np_vteps has entries to look for */
	__u8 ring_buffer;     /* np_events is one (kernels since 5.8 have them) */
	__u8 tunnel_checksum; /* kernel has bpf_tunnel_key.local_ipv4 (6.0), and node_state.tunnel_device is looked at
			       */
	__u8 pad[2];
};
_Static_assert(sizeof(struct node_cfg) == 168, "node_cfg");

/* What is asked of the source of a flow that comes from the network. */
enum source_check {
	SOURCE_ANY = 0,
	SOURCE_LOOSE = 1,  /* there is a route to it */
	SOURCE_STRICT = 2, /* by the device it came from */
};

/* What becomes of packets to a service's address on a port that it does not have: else they would circle between
 * node and router. */
enum stray_service {
	STRAY_PASS = 0,
	STRAY_DROP = 1,
	STRAY_REFUSE = 2,
};

/* What becomes of what pods send to the node itself, when their own rules let it go. */
enum pod_to_host {
	POD_TO_HOST_ACCEPT = 0,
	POD_TO_HOST_DROP = 1,
};

const volatile struct node_cfg cfg = {};

/* Never read: keeps the names of these enums in the object's BTF, where the agent reads them. */
struct names {
	enum drop drop;
	enum counter counter;
	enum frontend_flag frontend_flag;
	enum live_flag live_flag;
	enum range_set range_set;
	enum addr_kind addr_kind;
	enum addr_flag addr_flag;
	enum source_check source_check;
	enum stray_service stray_service;
	enum pod_to_host pod_to_host;
	enum iface_kind iface_kind;
	enum leg_flag leg_flag;
	enum socket_role socket_role;
	enum ct_state ct_state;
	enum dimension dimension;
	enum ports_flag ports_flag;
	enum rule_bits rule_bits;
	enum rule_action rule_action;
	enum host_view host_view;
	enum failsafe_direction failsafe_direction;
	enum event_kind event_kind;
};

const volatile struct names np_names = {};

#endif
