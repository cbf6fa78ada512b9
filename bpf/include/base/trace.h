/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* What the programs of `make trace` write to the kernel's trace_pipe; those of any other build write nothing. Layer:
 * shared by all programs. */
#ifndef NP_BASE_TRACE_H
#define NP_BASE_TRACE_H

#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

#ifdef NP_TRACE
#define np_trace(...) bpf_printk("netplane: " __VA_ARGS__)
#else
#define np_trace(...) ((void)0)
#endif

#endif
