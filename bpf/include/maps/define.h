/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* How a map is defined. Types of keys and values are those of types/: the single definition of what crosses to
 * TypeScript. Layer: shared by all programs and, through BTF, the agent. */
#ifndef NP_MAPS_DEFINE_H
#define NP_MAPS_DEFINE_H

#include <linux/types.h>
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

/* Sizes of those that grow with the cluster are set by the agent before load. Shared maps are pinned by name and
 * reused by every object that has them; what is not preallocated costs memory only for what is in it. */

#define NP_HASH(name, k, v, size)                     \
	struct {                                      \
		__uint(type, BPF_MAP_TYPE_HASH);      \
		__uint(max_entries, size);            \
		__uint(map_flags, BPF_F_NO_PREALLOC); \
		__type(key, k);                       \
		__type(value, v);                     \
	} name SEC(".maps")

/* Preallocated: a flood of new entries costs no allocation each, and needs no memory that the node may lack. */
#define NP_TABLE(name, k, v, size)               \
	struct {                                 \
		__uint(type, BPF_MAP_TYPE_HASH); \
		__uint(max_entries, size);       \
		__type(key, k);                  \
		__type(value, v);                \
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

#endif
