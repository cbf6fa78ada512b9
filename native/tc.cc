// SPDX-License-Identifier: Apache-2.0
// Filters at clsact hooks, for kernels without tcx. Layer: native.
#include <bpf/libbpf.h>

#include "args.h"
#include "exports.h"
#include "hook.h"
#include "program.h"

namespace netplane {
namespace {

constexpr uint32_t kMaxPriority = 0xffff;

// a TcFilter of JavaScript as libbpf wants it
struct Filter {
  bpf_tc_hook hook;
  bpf_tc_opts opts;
};

bpf_tc_hook Hook(int ifindex, bpf_tc_attach_point point) {
  auto hook = Opts<bpf_tc_hook>();
  hook.ifindex = ifindex;
  hook.attach_point = point;
  return hook;
}

// ingress and egress together are the qdisc itself
bpf_tc_hook WholeHook(const Napi::Value& ifindex, const char* op) {
  return Hook(ToIfindex(ifindex, op), static_cast<bpf_tc_attach_point>(BPF_TC_INGRESS | BPF_TC_EGRESS));
}

Filter ToFilter(const Napi::Value& value, const char* op) {
  Napi::Object object = ToObject(value, op, "filter");
  Direction direction = ToDirection(object.Get("direction"), op);
  Filter filter{
      Hook(ToIfindex(object.Get("ifindex"), op), direction == Direction::kIngress ? BPF_TC_INGRESS : BPF_TC_EGRESS),
      Opts<bpf_tc_opts>(),
  };
  filter.opts.handle = ToU32(object.Get("handle"), op, "handle");
  filter.opts.priority = ToU32(object.Get("priority"), op, "priority");
  if (filter.opts.handle == 0) ThrowInvalid(value.Env(), op, "handle must not be 0");
  if (filter.opts.priority == 0 || filter.opts.priority > kMaxPriority) {
    ThrowInvalid(value.Env(), op, "priority must be from 1 to 65535");
  }
  return filter;
}

// Arguments are checked before, so the kernel's EINVAL is left with: no clsact qdisc, or a filter of another kind at
// this priority. Neither is ours.
bool NothingThere(int result) { return result == -ENOENT || result == -EINVAL; }

Napi::Value CreateHook(const Napi::CallbackInfo& info) {
  const char* op = "bpf_tc_hook_create";
  bpf_tc_hook hook = WholeHook(info[0], op);
  LibbpfLog log;
  int result = bpf_tc_hook_create(&hook);
  if (result != -EEXIST) Check(info.Env(), result, op, log.Text());
  return Napi::Boolean::New(info.Env(), result == 0);
}

Napi::Value Attach(const Napi::CallbackInfo& info) {
  const char* op = "bpf_tc_attach";
  Filter filter = ToFilter(info[0], op);
  filter.opts.prog_fd = BpfProgram::From(info[1], op).fd(op);
  filter.opts.flags = BPF_TC_F_REPLACE;
  LibbpfLog log;
  int result = bpf_tc_attach(&filter.hook, &filter.opts);
  Check(info.Env(), result, op, log.Text());
  return Napi::Number::New(info.Env(), filter.opts.prog_id);
}

Napi::Value Query(const Napi::CallbackInfo& info) {
  const char* op = "bpf_tc_query";
  Filter filter = ToFilter(info[0], op);
  LibbpfLog log;
  int result = bpf_tc_query(&filter.hook, &filter.opts);
  if (NothingThere(result)) return info.Env().Undefined();
  Check(info.Env(), result, op, log.Text());
  return Napi::Number::New(info.Env(), filter.opts.prog_id);
}

Napi::Value Detach(const Napi::CallbackInfo& info) {
  const char* op = "bpf_tc_detach";
  Filter filter = ToFilter(info[0], op);
  LibbpfLog log;
  int result = bpf_tc_detach(&filter.hook, &filter.opts);
  if (!NothingThere(result)) Check(info.Env(), result, op, log.Text());
  return Napi::Boolean::New(info.Env(), result == 0);
}

void DestroyHook(const Napi::CallbackInfo& info) {
  const char* op = "bpf_tc_hook_destroy";
  bpf_tc_hook hook = WholeHook(info[0], op);
  LibbpfLog log;
  int result = bpf_tc_hook_destroy(&hook);
  Check(info.Env(), result, op, log.Text());
}

}  // namespace

void DefineTc(Napi::Env env, Napi::Object exports) {
  exports.Set("tcCreateHook", Napi::Function::New<CreateHook>(env, "tcCreateHook"));
  exports.Set("tcAttach", Napi::Function::New<Attach>(env, "tcAttach"));
  exports.Set("tcQuery", Napi::Function::New<Query>(env, "tcQuery"));
  exports.Set("tcDetach", Napi::Function::New<Detach>(env, "tcDetach"));
  exports.Set("tcDestroyHook", Napi::Function::New<DestroyHook>(env, "tcDestroyHook"));
}

}  // namespace netplane
