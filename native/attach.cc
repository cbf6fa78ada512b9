// SPDX-License-Identifier: Apache-2.0
// Attachments without links, for kernels before 5.7, and what hangs at a hook. Layer: native.
#include <array>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <sys/syscall.h>

#include "args.h"
#include "exports.h"
#include "hook.h"
#include "kernel.h"
#include "program.h"

namespace netplane {
namespace {

using Ids = std::array<uint32_t, kMaxProgramsAtHook>;

Napi::Array ToArray(Napi::Env env, const Ids& ids, uint32_t count) {
  Napi::Array array = Napi::Array::New(env);
  for (uint32_t i = 0; i < count && i < ids.size(); i++) array.Set(i, ids[i]);
  return array;
}

// The system call itself: our libbpf does not know of link ids.
Napi::Value TcxQuery(const Napi::CallbackInfo& info) {
  const char* op = "bpf(BPF_PROG_QUERY)";
  TcxQueryAttr attr = {};
  attr.target_ifindex = static_cast<uint32_t>(ToIfindex(info[0], op));
  attr.attach_type = ToTcxAttachType(info[1], op);
  Ids programs = {}, links = {};
  attr.prog_ids = reinterpret_cast<uintptr_t>(programs.data());
  attr.link_ids = reinterpret_cast<uintptr_t>(links.data());
  attr.count = kMaxProgramsAtHook;
  long result = syscall(SYS_bpf, BPF_PROG_QUERY, &attr, sizeof(attr));
  // the first kernels with tcx say ENOENT where nothing was ever attached
  if (result < 0 && errno != ENOENT) Throw(info.Env(), errno, op);
  uint32_t count = result < 0 ? 0 : attr.count;
  Napi::Object found = Napi::Object::New(info.Env());
  found.Set("programIds", ToArray(info.Env(), programs, count));
  found.Set("linkIds", ToArray(info.Env(), links, count));
  return found;
}

Napi::Value CgroupQuery(const Napi::CallbackInfo& info) {
  const char* op = "bpf_prog_query";
  bpf_attach_type type = ToCgroupAttachType(info[1], op);
  Fd cgroup = OpenCgroup(info[0], op);
  Ids programs = {};
  uint32_t count = kMaxProgramsAtHook;
  Check(info.Env(), bpf_prog_query(cgroup.get(), type, 0, nullptr, programs.data(), &count), op);
  return ToArray(info.Env(), programs, count);
}

void CgroupAttach(const Napi::CallbackInfo& info) {
  const char* op = "bpf_prog_attach";
  bpf_attach_type type = ToCgroupAttachType(info[1], op);
  int program = BpfProgram::From(info[2], op).fd(op);
  Fd cgroup = OpenCgroup(info[0], op);
  Check(info.Env(), bpf_prog_attach(program, cgroup.get(), type, BPF_F_ALLOW_MULTI), op);
}

Napi::Value CgroupDetach(const Napi::CallbackInfo& info) {
  const char* op = "bpf_prog_detach2";
  bpf_attach_type type = ToCgroupAttachType(info[1], op);
  int program = BpfProgram::From(info[2], op).fd(op);
  Fd cgroup = OpenCgroup(info[0], op);
  int result = bpf_prog_detach2(program, cgroup.get(), type);
  if (result != -ENOENT) Check(info.Env(), result, op);
  return Napi::Boolean::New(info.Env(), result == 0);
}

void XdpAttach(const Napi::CallbackInfo& info) {
  const char* op = "bpf_xdp_attach";
  int ifindex = ToIfindex(info[0], op);
  uint32_t flags = ToU32Or(info[2], 0, op, "flags");
  bool detach = info[1].IsUndefined();
  int program = detach ? -1 : BpfProgram::From(info[1], op).fd(op);
  LibbpfLog log;
  int result = detach ? bpf_xdp_detach(ifindex, flags, nullptr) : bpf_xdp_attach(ifindex, program, flags, nullptr);
  Check(info.Env(), result, op, log.Text());
}

Napi::Value XdpQuery(const Napi::CallbackInfo& info) {
  const char* op = "bpf_xdp_query_id";
  uint32_t id = 0;
  LibbpfLog log;
  int result = bpf_xdp_query_id(ToIfindex(info[0], op), 0, &id);
  Check(info.Env(), result, op, log.Text());
  if (id == 0) return info.Env().Undefined();
  return Napi::Number::New(info.Env(), id);
}

}  // namespace

void DefineAttach(Napi::Env env, Napi::Object exports) {
  exports.Set("tcxQuery", Napi::Function::New<TcxQuery>(env, "tcxQuery"));
  exports.Set("cgroupQuery", Napi::Function::New<CgroupQuery>(env, "cgroupQuery"));
  exports.Set("cgroupAttach", Napi::Function::New<CgroupAttach>(env, "cgroupAttach"));
  exports.Set("cgroupDetach", Napi::Function::New<CgroupDetach>(env, "cgroupDetach"));
  exports.Set("xdpAttach", Napi::Function::New<XdpAttach>(env, "xdpAttach"));
  exports.Set("xdpQuery", Napi::Function::New<XdpQuery>(env, "xdpQuery"));
}

}  // namespace netplane
