// SPDX-License-Identifier: Apache-2.0
// Names of hooks to the kernel's numbers. Layer: native.
#include "hook.h"

#include <string_view>

#include "args.h"
#include "kernel.h"

namespace netplane {
namespace {

struct CgroupHook {
  std::string_view name;
  bpf_attach_type type;
};

constexpr CgroupHook kCgroupHooks[] = {
    {"connect4", BPF_CGROUP_INET4_CONNECT},
    {"connect6", BPF_CGROUP_INET6_CONNECT},
    {"sendmsg4", BPF_CGROUP_UDP4_SENDMSG},
    {"sendmsg6", BPF_CGROUP_UDP6_SENDMSG},
    {"recvmsg4", BPF_CGROUP_UDP4_RECVMSG},
    {"recvmsg6", BPF_CGROUP_UDP6_RECVMSG},
    {"getpeername4", BPF_CGROUP_INET4_GETPEERNAME},
    {"getpeername6", BPF_CGROUP_INET6_GETPEERNAME},
    {"sock_ops", BPF_CGROUP_SOCK_OPS},
};

}  // namespace

Direction ToDirection(const Napi::Value& value, const char* op) {
  std::string text = ToText(value, op, "direction");
  if (text == "ingress") return Direction::kIngress;
  if (text == "egress") return Direction::kEgress;
  ThrowInvalid(value.Env(), op, "direction must be ingress or egress");
}

bpf_attach_type ToTcxAttachType(const Napi::Value& value, const char* op) {
  return ToDirection(value, op) == Direction::kIngress ? kAttachTcxIngress : kAttachTcxEgress;
}

bpf_attach_type ToCgroupAttachType(const Napi::Value& value, const char* op) {
  std::string text = ToText(value, op, "hook");
  for (const CgroupHook& hook : kCgroupHooks) {
    if (hook.name == text) return hook.type;
  }
  ThrowInvalid(value.Env(), op, "no cgroup hook " + text);
}

Fd OpenCgroup(const Napi::Value& path, const char* op) {
  std::string text = ToText(path, op, "cgroup path");
  Fd fd(::open(text.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd.open()) Throw(path.Env(), errno, op, text);
  return fd;
}

}  // namespace netplane
