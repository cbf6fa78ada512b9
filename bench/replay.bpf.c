/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* tc.bpf.c as it is but for one thing: the tunnel's room is made without telling the kernel that the packet is
 * now encapsulated. Up to 6.18 at least the kernel does not forget that when the room is taken away again, and
 * would refuse to encapsulate the test run's packet a second time. Layer: bench. */
#include "../bpf/include/base/compat.h"
#undef NP_ENCAP_FLAGS
#define NP_ENCAP_FLAGS(l3, extra) BPF_F_ADJ_ROOM_FIXED_GSO
#include "../bpf/tc.bpf.c"
