/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* Every map; types/lb.h, types/policy.h and types/conntrack.h have the structs: the single definition of what crosses
 * to TypeScript. Layer: shared by all programs and, through BTF, the agent. */
#ifndef NP_MAPS_H
#define NP_MAPS_H

#include <linux/types.h>
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include "types/reason.h"
#include "types/policy.h"
#include "types/conntrack.h"

/* Sizes of those that grow with the cluster are set by the agent before load. Shared maps are pinned by name and
 * reused by every object; what is not preallocated costs memory only for what is in it. */

#define NP_HASH(name, k, v, size)                     \
	struct {                                      \
		__uint(type, BPF_MAP_TYPE_HASH);      \
		__uint(max_entries, size);            \
		__uint(map_flags, BPF_F_NO_PREALLOC); \
		__type(key, k);                       \
		__type(value, v);                     \
	} name SEC(".maps")

#define NP_LRU(name, k, v, size)                     \
	struct {                                     \
		__uint(type, BPF_MAP_TYPE_LRU_HASH); \
		__uint(max_entries, size);           \
		__type(key, k);                      \
		__type(value, v);                    \
	} name SEC(".maps")

#define NP_ARRAY(name, v, size)                   \
	struct {                                  \
		__uint(type, BPF_MAP_TYPE_ARRAY); \
		__uint(max_entries, size);        \
		__type(key, __u32);               \
		__type(value, v);                 \
	} name SEC(".maps")

#define NP_TRIE(name, k, v, size)                     \
	struct {                                      \
		__uint(type, BPF_MAP_TYPE_LPM_TRIE);  \
		__uint(max_entries, size);            \
		__uint(map_flags, BPF_F_NO_PREALLOC); \
		__type(key, k);                       \
		__type(value, v);                     \
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
/* key: ifindex of a pod's device */
NP_LRU(np_links, __u32, struct link_addr, 4096);
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

/* Nothing that counts the same interrupts programs of packets; processes that connect on one CPU interrupt one
 * another. */
static __always_inline void count_slot(__u32 slot)
{
	__u64 *n = bpf_map_lookup_elem(&np_counters, &slot);

	if (!n)
		return;
#ifdef NP_SOCKETS
	__sync_fetch_and_add(n, 1);
#else
	*n += 1;
#endif
}

#endif
