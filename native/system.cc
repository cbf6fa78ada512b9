// SPDX-License-Identifier: Apache-2.0
// Facts about the machine and the process, and the switch for batch calls. Layer: native.
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <ctime>
#include <memory>
#include <net/if.h>
#include <sys/resource.h>

#include "args.h"
#include "errors.h"
#include "exports.h"
#include "map-batch.h"

namespace netplane {
namespace {

Napi::Value PossibleCpus(const Napi::CallbackInfo& info) {
  const char* op = "libbpf_num_possible_cpus";
  return Napi::Number::New(info.Env(), Check(info.Env(), libbpf_num_possible_cpus(), op));
}

Napi::Value IfindexOf(const Napi::CallbackInfo& info) {
  std::string name = ToText(info[0], "if_nametoindex", "name");
  return Napi::Number::New(info.Env(), if_nametoindex(name.c_str()));
}

Napi::Value MonotonicNs(const Napi::CallbackInfo& info) {
  timespec now = {};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return Napi::Number::New(info.Env(), static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec));
}

Napi::Value BtfById(const Napi::CallbackInfo& info) {
  const char* op = "btf__load_from_kernel_by_id";
  uint32_t id = ToU32(info[0], op, "id");
  LibbpfLog log;
  std::unique_ptr<btf, void (*)(btf*)> types(btf__load_from_kernel_by_id(id), btf__free);
  if (types == nullptr) Throw(info.Env(), errno, op, log.Text());
  uint32_t size = 0;
  const void* data = btf__raw_data(types.get(), &size);
  if (data == nullptr) Throw(info.Env(), errno, "btf__raw_data");
  return Napi::Buffer<uint8_t>::Copy(info.Env(), static_cast<const uint8_t*>(data), size);
}

Napi::Value LibbpfVersion(const Napi::CallbackInfo& info) {
  std::string text = std::to_string(libbpf_major_version()) + "." + std::to_string(libbpf_minor_version());
  return Napi::String::New(info.Env(), text);
}

void RaiseMemlock(const Napi::CallbackInfo& info) {
  rlimit limit{RLIM_INFINITY, RLIM_INFINITY};
  if (setrlimit(RLIMIT_MEMLOCK, &limit) != 0) Throw(info.Env(), errno, "setrlimit");
}

void SetBatchCalls(const Napi::CallbackInfo& info) { UseBatches(ToBool(info[0], "setBatchCalls", "on")); }

}  // namespace

void DefineSystem(Napi::Env env, Napi::Object exports) {
  exports.Set("possibleCpus", Napi::Function::New<PossibleCpus>(env, "possibleCpus"));
  exports.Set("ifindexOf", Napi::Function::New<IfindexOf>(env, "ifindexOf"));
  exports.Set("monotonicNs", Napi::Function::New<MonotonicNs>(env, "monotonicNs"));
  exports.Set("btfById", Napi::Function::New<BtfById>(env, "btfById"));
  exports.Set("libbpfVersion", Napi::Function::New<LibbpfVersion>(env, "libbpfVersion"));
  exports.Set("raiseMemlock", Napi::Function::New<RaiseMemlock>(env, "raiseMemlock"));
  exports.Set("setBatchCalls", Napi::Function::New<SetBatchCalls>(env, "setBatchCalls"));
}

}  // namespace netplane
