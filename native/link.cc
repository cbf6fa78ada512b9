// SPDX-License-Identifier: Apache-2.0
// BpfLink: attach to tcx, XDP and cgroups; update, inspect, detach. Layer: native.
#include "link.h"

#include <bpf/bpf.h>

#include "args.h"
#include "hook.h"
#include "kernel.h"
#include "program.h"

namespace netplane {
namespace {

constexpr const char* kCreate = "bpf_link_create";

TcxLinkInfo ReadTcx(const bpf_link_info& link) {
  TcxLinkInfo tcx;
  static_assert(sizeof(tcx) <= sizeof(link.cgroup));
  memcpy(&tcx, &link.cgroup, sizeof(tcx));
  return tcx;
}

// where the link is: only the kinds we make
void SetPlace(Napi::Object result, const bpf_link_info& link) {
  uint32_t ifindex = 0;
  uint32_t attach_type = 0;
  if (link.type == kLinkTypeTcx) {
    TcxLinkInfo tcx = ReadTcx(link);
    ifindex = tcx.ifindex;
    attach_type = tcx.attach_type;
  } else if (link.type == BPF_LINK_TYPE_XDP) {
    ifindex = link.xdp.ifindex;
  } else if (link.type == BPF_LINK_TYPE_CGROUP) {
    attach_type = link.cgroup.attach_type;
  }
  result.Set("ifindex", ifindex);
  result.Set("attachType", attach_type);
}

}  // namespace

BpfLink::BpfLink(const Napi::CallbackInfo& info) : FdHandle<BpfLink>(info) { fd_ = Take<Fd>(info); }

Napi::Value BpfLink::AttachTcx(const Napi::CallbackInfo& info) {
  int program = BpfProgram::From(info[0], kCreate).fd(kCreate);
  int ifindex = ToIfindex(info[1], kCreate);
  int fd = bpf_link_create(program, ifindex, ToTcxAttachType(info[2], kCreate), nullptr);
  return Make(info.Env(), OwnFd(info.Env(), fd, kCreate));
}

Napi::Value BpfLink::AttachXdp(const Napi::CallbackInfo& info) {
  int program = BpfProgram::From(info[0], kCreate).fd(kCreate);
  int ifindex = ToIfindex(info[1], kCreate);
  auto opts = Opts<bpf_link_create_opts>();
  opts.flags = ToU32Or(info[2], 0, kCreate, "flags");
  int fd = bpf_link_create(program, ifindex, BPF_XDP, &opts);
  return Make(info.Env(), OwnFd(info.Env(), fd, kCreate));
}

Napi::Value BpfLink::AttachCgroup(const Napi::CallbackInfo& info) {
  int program = BpfProgram::From(info[0], kCreate).fd(kCreate);
  bpf_attach_type type = ToCgroupAttachType(info[2], kCreate);
  Fd cgroup = OpenCgroup(info[1], kCreate);
  int fd = bpf_link_create(program, cgroup.get(), type, nullptr);
  return Make(info.Env(), OwnFd(info.Env(), fd, kCreate));
}

Napi::Value BpfLink::OpenPinned(const Napi::CallbackInfo& info) {
  return Make(info.Env(), OpenPin(info, PinKind::kLink, "link"));
}

Napi::Value BpfLink::Info(const Napi::CallbackInfo& info) {
  const char* op = "bpf_obj_get_info_by_fd";
  bpf_link_info link = {};
  uint32_t size = sizeof(link);
  Check(info.Env(), bpf_obj_get_info_by_fd(fd(op), &link, &size), op);
  Napi::Object result = Napi::Object::New(info.Env());
  result.Set("id", link.id);
  result.Set("type", link.type);
  result.Set("programId", link.prog_id);
  SetPlace(result, link);
  return result;
}

void BpfLink::Update(const Napi::CallbackInfo& info) {
  const char* op = "bpf_link_update";
  int link = fd(op);
  int program = BpfProgram::From(info[0], op).fd(op);
  Check(info.Env(), bpf_link_update(link, program, nullptr), op);
}

void BpfLink::Detach(const Napi::CallbackInfo& info) {
  const char* op = "bpf_link_detach";
  Check(info.Env(), bpf_link_detach(fd(op)), op);
}

void BpfLink::Pin(const Napi::CallbackInfo& info) { PinFd(info, fd("bpf_obj_pin")); }

void BpfLink::Define(Napi::Env env, Napi::Object exports) {
  Export(env, exports,
         DefineClass(env, kName,
                     {
                         StaticMethod<&BpfLink::AttachTcx>("attachTcx"),
                         StaticMethod<&BpfLink::AttachXdp>("attachXdp"),
                         StaticMethod<&BpfLink::AttachCgroup>("attachCgroup"),
                         StaticMethod<&BpfLink::OpenPinned>("openPin"),
                         InstanceMethod<&BpfLink::Info>("info"),
                         InstanceMethod<&BpfLink::Update>("update"),
                         InstanceMethod<&BpfLink::Detach>("detach"),
                         InstanceMethod<&BpfLink::Pin>("pin"),
                         InstanceMethod<&BpfLink::Close>("close"),
                     }));
}

}  // namespace netplane
