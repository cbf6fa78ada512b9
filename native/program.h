// SPDX-License-Identifier: Apache-2.0
// BpfProgram: one loaded program. Layer: native.
#pragma once

#include "handle.h"

namespace netplane {

class BpfProgram : public FdHandle<BpfProgram> {
 public:
  static constexpr napi_type_tag kTag = {0x6e6574706c616e65, 0x0b1ec70000000003};
  static constexpr ClassId kClass = ClassId::kProgram;
  static constexpr const char* kName = "BpfProgram";

  static void Define(Napi::Env env, Napi::Object exports);
  static Napi::Object FromFd(Napi::Env env, Fd fd) { return Make(env, std::move(fd)); }
  explicit BpfProgram(const Napi::CallbackInfo& info);

 private:
  static Napi::Value Load(const Napi::CallbackInfo& info);
  static Napi::Value OpenPinned(const Napi::CallbackInfo& info);
  static Napi::Value OpenId(const Napi::CallbackInfo& info);
  static Napi::Value NextId(const Napi::CallbackInfo& info);

  Napi::Value Info(const Napi::CallbackInfo& info);
  Napi::Value TestRun(const Napi::CallbackInfo& info);
  void Pin(const Napi::CallbackInfo& info);
  void Close(const Napi::CallbackInfo&) { fd_.Reset(); }
};

}  // namespace netplane
