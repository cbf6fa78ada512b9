/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* Flows, ways and policy. Layer: programs of packets; those of sockets have none of these. */
#ifndef NP_MAPS_PACKETS_H
#define NP_MAPS_PACKETS_H

#include "maps/services.h"
#include "maps/state.h"
#include "types/conntrack.h"
#include "types/policy.h"

/* ---- written by the programs ------------------------------------------------------------------------ */

/* flows; read by all tc programs. The agent deletes what has expired; when the table is full, a new flow takes the
 * place of one that np_recent names (conntrack/evict.h) */
NP_TABLE(np_ct, struct ct_key, struct ct_value, 512000);
/* keys of flows, the last ones entered; while the table is full a flow's slot is that of one that has gone */
NP_ARRAY(np_recent, struct ct_key, RECENT_FLOWS);
NP_ARRAY(np_pressure, struct pressure, 1);
/* bounded by LRU eviction; written and read by the slow paths alone */
NP_LRU(np_frags, struct frag_key, struct frag, 4096);
/* key: ifindex of a pod's device */
NP_LRU(np_links, __u32, struct link_addr, 4096);
/* key: a node's address; written and read by the slow paths alone */
NP_LRU(np_paths, struct addr, struct path, 4096);

/* ---- written by the agent, read by the slow paths ---------------------------------------------------- */

/* key: ifindex; from link events */
NP_HASH(np_ifaces, __u32, struct iface, 4096);
/* connections that are older than our programs, for the first minute of these */
NP_HASH(np_older, struct ct_key, struct older, 65536);
/* key: list */
NP_HASH(np_maglev, __u64, struct maglev, 4096);
NP_TRIE(np_ranges, struct range_key, __u32, 65536);
NP_TRIE(np_routes, struct net_key, struct route, 65536);
/* key: a node's address; read by all tc programs, where there are any */
NP_HASH(np_vteps, struct addr, struct vtep, 16384);

/* ---- written by the agent, read by the slow paths and, but for the last two, by XDP ------------------- */

/* identities of addresses that np_addrs does not have */
NP_TRIE(np_nets, struct net_key, __u32, 65536);
NP_HASH(np_bits, struct bits_key, struct bits, 262144);
NP_HASH(np_ports, struct ports_key, struct ports, 16384);
NP_HASH(np_pages, struct page_key, struct ports_page, 32768);
/* read by the fast path as well */
NP_HASH(np_hosts, struct host_key, struct host_sets, 1024);
/* the value counts for nothing */
NP_TRIE(np_failsafes, struct failsafe_key, __u32, 1024);
/* key: enum failsafe_direction * FAILSAFE_PORTS + port % FAILSAFE_PORTS; value: 0 where np_failsafes has none such */
NP_ARRAY(np_spared, __u32, FAILSAFE_SLOTS);
/* by what number the agent knows a rule */
NP_HASH(np_rules, struct rule_key, __u32, 65536);

/* ---- written by the agent, read by XDP ---------------------------------------------------------------- */

/* key: ifindex, of devices that fit; value: untracked_ingress as np_hosts has it, for XDP has no time to look there */
NP_ARRAY(np_untracked, __u64, UNTRACKED_DEVICES);

#endif
