/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* Services: address and port to a frontend, and a backend of it. Layer: shared by tc slow paths and connect-time
 * programs. */
#ifndef NP_LB_SERVICE_H
#define NP_LB_SERVICE_H

#include <linux/in.h>
#include "maps/services.h"
#include "base/addr.h"

static __always_inline struct frontend *frontend_at(const struct addr *dst, __be16 port, __u8 proto)
{
	struct frontend_key k = {};

	k.addr = *dst;
	k.port = port;
	k.proto = proto;
	return bpf_map_lookup_elem(&np_frontends, &k);
}

/* The node port that is served on an address of this node. */
static __always_inline struct frontend *frontend_of_node(const struct addr *dst, __be16 port, __u8 proto,
							 const struct addr_info *info)
{
	struct addr any;

	if (info->kind != ADDR_SELF || !(info->flags & ADDR_NODE_PORTS))
		return 0;
	addr_any(&any, addr_is_v4(dst));
	return frontend_at(&any, port, proto);
}

/* The service reached at this address; `dst_info` is what is known of the address, where it was asked for. Packets
 * from the network are for this node most of the time (`to_node_first`), others hardly ever. */
static __always_inline struct frontend *frontend_find(const struct addr *dst, __be16 port, __u8 proto,
						      struct addr_info *dst_info, bool to_node_first)
{
	bool has_ports = proto == IPPROTO_TCP || proto == IPPROTO_UDP;
	struct addr_info *info;
	struct frontend *fe;

	if (has_ports && !to_node_first) {
		fe = frontend_at(dst, port, proto);
		if (fe)
			return fe;
	}
	info = bpf_map_lookup_elem(&np_addrs, dst);
	if (info)
		*dst_info = *info;
	if (!has_ports || dst_info->kind == ADDR_LOCAL_POD)
		return 0;
	fe = frontend_of_node(dst, port, proto, dst_info);
	return fe || !to_node_first ? fe : frontend_at(dst, port, proto);
}

/* Does a node take tunnel packets there? What a program translates to it would come from a node, and be taken for
 * that node's. */
static __always_inline bool is_tunnel_end(const struct addr *a, __be16 port, __u8 proto)
{
	struct addr_info *info;

	if (proto != IPPROTO_UDP || port != cfg.tunnel_port)
		return false;
	info = bpf_map_lookup_elem(&np_addrs, a);
	return info && (info->kind == ADDR_NODE || info->kind == ADDR_SELF);
}

static __always_inline struct backend *backend_in(__u64 list, __u32 slot)
{
	struct backend_key k = {};

	k.list = list;
	k.slot = slot;
	return bpf_map_lookup_elem(&np_backends, &k);
}

/* Any backend, each as likely as the other. A slot may be missing for the moment between two writes of the agent. */
static __always_inline struct backend *backend_at_random(const struct choice *from, __u32 *slot)
{
	if (!from->count)
		return 0;
	*slot = bpf_get_prandom_u32() % from->count;
	return backend_in(from->list, *slot);
}

/* What is known of a backend beside its slot. */
static __always_inline struct live *backend_live(__u64 list, const struct addr *addr, __be16 port)
{
	struct live_key k = {};

	k.list = list;
	k.addr = *addr;
	k.port = port;
	return bpf_map_lookup_elem(&np_live, &k);
}

static __always_inline bool backend_is(const struct backend *be, const struct addr *addr, __be16 port)
{
	return be && be->port == port && addr_eq(&be->addr, addr);
}

#endif
