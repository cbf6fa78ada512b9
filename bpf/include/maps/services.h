/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* Services, their backends, and what is known of addresses. Layer: shared by all programs. */
#ifndef NP_MAPS_SERVICES_H
#define NP_MAPS_SERVICES_H

#include "maps/define.h"
#include "types/lb.h"

/* written by the agent, read by all programs */
NP_HASH(np_frontends, struct frontend_key, struct frontend, 65536);
NP_HASH(np_backends, struct backend_key, struct backend, 262144);
NP_HASH(np_addrs, struct addr, struct addr_info, 65536);
NP_HASH(np_live, struct live_key, struct live, 65536);

/* written and read by the slow paths and by connect and sendmsg; bounded by LRU eviction */
NP_LRU(np_affinity, struct affinity_key, struct affinity, 16384);

#endif
