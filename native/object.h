// SPDX-License-Identifier: Apache-2.0
// BpfObject: an object file from open to load. Layer: native.
#pragma once

#include <bpf/libbpf.h>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "handle.h"
#include "helper-stubs.h"

namespace netplane {

struct ObjectCloser {
  void operator()(bpf_object* object) const { bpf_object__close(object); }
};

class BpfObject : public Handle<BpfObject> {
 public:
  static constexpr napi_type_tag kTag = {0x6e6574706c616e65, 0x0b1ec70000000001};
  static constexpr ClassId kClass = ClassId::kObject;
  static constexpr const char* kName = "BpfObject";
  using Init = std::unique_ptr<bpf_object, ObjectCloser>;

  static void Define(Napi::Env env, Napi::Object exports);
  explicit BpfObject(const Napi::CallbackInfo& info);

 private:
  static Napi::Value Open(const Napi::CallbackInfo& info);

  Napi::Value Btf(const Napi::CallbackInfo& info);
  Napi::Value Maps(const Napi::CallbackInfo& info);
  Napi::Value Programs(const Napi::CallbackInfo& info);
  Napi::Value Rodata(const Napi::CallbackInfo& info);
  void SetRodata(const Napi::CallbackInfo& info);
  void SetMaxEntries(const Napi::CallbackInfo& info);
  void SetMapType(const Napi::CallbackInfo& info);
  void SetMapFlags(const Napi::CallbackInfo& info);
  void SkipMap(const Napi::CallbackInfo& info);
  void ReuseMap(const Napi::CallbackInfo& info);
  void SetAutoload(const Napi::CallbackInfo& info);
  void StubHelpers(const Napi::CallbackInfo& info);
  Napi::Value Load(const Napi::CallbackInfo& info);
  Napi::Value LoadWithStatistics(const Napi::CallbackInfo& info);
  Napi::Value Map(const Napi::CallbackInfo& info);
  Napi::Value Program(const Napi::CallbackInfo& info);
  void Close(const Napi::CallbackInfo& info);

  // the open object; EBADF when closed, EBUSY while it loads
  bpf_object* Get(const char* op) const;
  bpf_map* FindMap(const Napi::Value& name, const char* op) const;
  bpf_program* FindProgram(const Napi::Value& name, const char* op) const;
  bpf_map* FindRodata(const char* op) const;
  Napi::Value StartLoad(Napi::Env env, bool statistics);
  void Loaded();

  std::unique_ptr<bpf_object, ObjectCloser> object_;
  // by the names in the file: libbpf renames a map when another's fd is put in its place
  std::vector<std::pair<std::string, bpf_map*>> maps_;
  HelperSet stubs_;
  bool loading_ = false;
  bool close_after_load_ = false;
};

}  // namespace netplane
