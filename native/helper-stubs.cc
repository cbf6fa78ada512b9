// SPDX-License-Identifier: Apache-2.0
// Calls of missing helpers become `r0 = -EOPNOTSUPP`. Layer: native.
#include "helper-stubs.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <vector>

#include "args.h"

namespace netplane {
namespace {

struct Section {
  const char* name;
  bpf_prog_type type;
  bpf_attach_type attach;
};

// Our handlers take the place of libbpf's own for these sections, so types must be those libbpf would infer.
constexpr Section kSections[] = {
    {"tc", BPF_PROG_TYPE_SCHED_CLS, static_cast<bpf_attach_type>(0)},
    {"classifier", BPF_PROG_TYPE_SCHED_CLS, static_cast<bpf_attach_type>(0)},
    {"xdp", BPF_PROG_TYPE_XDP, BPF_XDP},
    {"cgroup/connect4", BPF_PROG_TYPE_CGROUP_SOCK_ADDR, BPF_CGROUP_INET4_CONNECT},
    {"cgroup/connect6", BPF_PROG_TYPE_CGROUP_SOCK_ADDR, BPF_CGROUP_INET6_CONNECT},
    {"cgroup/sendmsg4", BPF_PROG_TYPE_CGROUP_SOCK_ADDR, BPF_CGROUP_UDP4_SENDMSG},
    {"cgroup/sendmsg6", BPF_PROG_TYPE_CGROUP_SOCK_ADDR, BPF_CGROUP_UDP6_SENDMSG},
    {"cgroup/recvmsg4", BPF_PROG_TYPE_CGROUP_SOCK_ADDR, BPF_CGROUP_UDP4_RECVMSG},
    {"cgroup/recvmsg6", BPF_PROG_TYPE_CGROUP_SOCK_ADDR, BPF_CGROUP_UDP6_RECVMSG},
    {"cgroup/getpeername4", BPF_PROG_TYPE_CGROUP_SOCK_ADDR, BPF_CGROUP_INET4_GETPEERNAME},
    {"cgroup/getpeername6", BPF_PROG_TYPE_CGROUP_SOCK_ADDR, BPF_CGROUP_INET6_GETPEERNAME},
    {"sockops", BPF_PROG_TYPE_SOCK_OPS, BPF_CGROUP_SOCK_OPS},
};

// libbpf's callbacks carry nothing of ours, but run on the thread that called bpf_object__load.
thread_local const HelperSet* current_helpers = nullptr;

// src_reg tells helpers (0) from subprograms and kernel functions
bool IsCallOf(const bpf_insn& insn, const HelperSet& helpers) {
  return insn.code == (BPF_JMP | BPF_CALL) && insn.src_reg == 0 && helpers.count(static_cast<uint32_t>(insn.imm)) > 0;
}

bpf_insn Stub() {
  bpf_insn insn = {};
  insn.code = BPF_ALU64 | BPF_MOV | BPF_K;
  insn.dst_reg = BPF_REG_0;
  insn.imm = -EOPNOTSUPP;
  return insn;
}

// libbpf's type says the hook returns 0 or a negative errno
int BeforeLoad(bpf_program* program, bpf_prog_load_opts*, long) {
  if (current_helpers == nullptr || current_helpers->empty()) return 0;
  const bpf_insn* first = bpf_program__insns(program);
  std::vector<bpf_insn> insns(first, first + bpf_program__insn_cnt(program));
  std::replace_if(
      insns.begin(), insns.end(), [](const bpf_insn& insn) { return IsCallOf(insn, *current_helpers); }, Stub());
  return bpf_program__set_insns(program, insns.data(), insns.size());
}

}  // namespace

void InstallStubHandlers() {
  static std::once_flag once;
  std::call_once(once, [] {
    auto opts = Opts<libbpf_prog_handler_opts>();
    opts.prog_prepare_load_fn = BeforeLoad;
    for (const Section& section : kSections) {
      libbpf_register_prog_handler(section.name, section.type, section.attach, &opts);
    }
  });
}

bool CanStub(const bpf_program* program) {
  const char* section = bpf_program__section_name(program);
  return std::any_of(std::begin(kSections), std::end(kSections),
                     [section](const Section& known) { return strcmp(known.name, section) == 0; });
}

StubScope::StubScope(const HelperSet& helpers) { current_helpers = &helpers; }

StubScope::~StubScope() { current_helpers = nullptr; }

}  // namespace netplane
