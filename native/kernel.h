// SPDX-License-Identifier: Apache-2.0
// Kernel interface newer than the headers we build with (Linux 6.1), each with the version that brought it.
// Layer: native.
#pragma once

#include <cstdint>
#include <linux/bpf.h>

namespace netplane {

// 6.6: tcx, multi-program attachment at tc's hooks
constexpr auto kAttachTcxIngress = static_cast<bpf_attach_type>(46);
constexpr auto kAttachTcxEgress = static_cast<bpf_attach_type>(47);
constexpr uint32_t kLinkTypeTcx = 11;

// 6.6: bpf_link_info of a tcx link, in place of the union's other members
struct TcxLinkInfo {
  uint32_t ifindex;
  uint32_t attach_type;
};

// 6.6: the arguments of BPF_PROG_QUERY with the ids of links
struct TcxQueryAttr {
  uint32_t target_ifindex;
  uint32_t attach_type;
  uint32_t query_flags;
  uint32_t attach_flags;
  uint64_t prog_ids;
  uint32_t count;
  uint32_t pad;
  uint64_t prog_attach_flags;
  uint64_t link_ids;
  uint64_t link_attach_flags;
  uint64_t revision;
};
static_assert(sizeof(TcxQueryAttr) == 64, "union bpf_attr, query, of 6.6");

// BPF_MPROG_MAX and BPF_CGROUP_MAX_PROGS: no hook holds more programs
constexpr uint32_t kMaxProgramsAtHook = 64;

// The kernel's own "not supported", which leaks to user space and has no name there
constexpr int kEnotsupp = 524;

}  // namespace netplane
