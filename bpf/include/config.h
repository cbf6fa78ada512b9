/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* Read-only knobs, set by name before load. Layer: shared by all programs. */
#ifndef NP_CONFIG_H
#define NP_CONFIG_H

#include "maps.h"

/* From 5.5 on the verifier folds these and prunes what they switch off; before, they are ordinary loads and the
 * addon has replaced calls of missing helpers, so the same object still loads. */
struct node_cfg {
	struct addr node_v4;	/* this node's address, source of tunnel packets and ICMP errors; zero: none */
	struct addr node_v6;
	struct addr gateway_v4;	/* the pods' gateway, answered for by us */
	struct addr gateway_v6;
	__u64 timeout_tcp_syn;	/* ns */
	__u64 timeout_tcp_open;
	__u64 timeout_tcp_fin;
	__u64 timeout_tcp_rst;
	__u64 timeout_udp;	/* one direction seen */
	__u64 timeout_udp_stream; /* both seen */
	__u64 timeout_icmp;
	__u32 tunnel_vni;
	__be16 tunnel_port;
	__u8 redirect_peer;	/* kernel has bpf_redirect_peer (5.10) */
	__u8 redirect_neigh;	/* kernel has bpf_redirect_neigh (5.10) */
	__u8 coarse_clock;	/* kernel has bpf_ktime_get_coarse_ns (5.11) */
	__u8 jiffies;		/* kernel has bpf_jiffies64 (5.6) */
	__u8 connect_udp;	/* connect-time load balancing for UDP as well */
	__u8 connect_tcp;	/* connect-time load balancing for TCP */
	__u8 pad[4];
};
_Static_assert(sizeof(struct node_cfg) == 136, "node_cfg");

const volatile struct node_cfg cfg = {};

/* Never read: keeps the names of these enums in the object's BTF, where the agent reads them. */
struct names {
	enum drop drop;
	enum counter counter;
	enum frontend_flag frontend_flag;
	enum addr_kind addr_kind;
	enum iface_kind iface_kind;
	enum leg_flag leg_flag;
	enum ct_state ct_state;
};

const volatile struct names np_names = {};

#endif
