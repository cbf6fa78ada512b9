/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* Services: address and port to a backend. Layer: shared by tc slow paths and connect-time programs. */
#ifndef NP_SERVICE_H
#define NP_SERVICE_H

#include <linux/in.h>
#include "addr.h"

/* The service reached at this address; one of this node's own addresses reaches the node ports. Where there is none,
 * `dst_info` is what is known of the address. */
static __always_inline struct frontend *frontend_find(const struct addr *dst, __be16 port, __u8 proto, struct addr_info *dst_info)
{
	struct frontend_key k = {};
	struct addr_info *info;
	struct frontend *fe;

	k.addr = *dst;
	k.port = port;
	k.proto = proto;
	if (proto == IPPROTO_TCP || proto == IPPROTO_UDP) {
		fe = bpf_map_lookup_elem(&np_frontends, &k);
		if (fe)
			return fe;
	}
	info = bpf_map_lookup_elem(&np_addrs, &k.addr);
	if (!info)
		return 0;
	*dst_info = *info;
	if (info->kind != ADDR_SELF)
		return 0;
	addr_any(&k.addr, addr_is_v4(dst));
	return bpf_map_lookup_elem(&np_frontends, &k);
}

/* Any backend, each as likely as the other. A slot may be missing for the moment between two writes of the agent. */
static __always_inline struct backend *backend_choose(const struct frontend *fe)
{
	struct backend_key k = {};

	if (!fe->count)
		return 0;
	k.service = fe->service;
	k.slot = bpf_get_prandom_u32() % fe->count;
	return bpf_map_lookup_elem(&np_backends, &k);
}

#endif
