// SPDX-License-Identifier: Apache-2.0
// BpfLink: an attachment that lives as long as a handle or pin of it. Layer: native.
#pragma once

#include "handle.h"

namespace netplane {

class BpfLink : public FdHandle<BpfLink> {
 public:
  static constexpr napi_type_tag kTag = {0x6e6574706c616e65, 0x0b1ec70000000004};
  static constexpr ClassId kClass = ClassId::kLink;
  static constexpr const char* kName = "BpfLink";

  static void Define(Napi::Env env, Napi::Object exports);
  explicit BpfLink(const Napi::CallbackInfo& info);

 private:
  static Napi::Value AttachTcx(const Napi::CallbackInfo& info);
  static Napi::Value AttachXdp(const Napi::CallbackInfo& info);
  static Napi::Value AttachCgroup(const Napi::CallbackInfo& info);
  static Napi::Value OpenPinned(const Napi::CallbackInfo& info);

  Napi::Value Info(const Napi::CallbackInfo& info);
  void Update(const Napi::CallbackInfo& info);
  void Detach(const Napi::CallbackInfo& info);
  void Pin(const Napi::CallbackInfo& info);
  void Close(const Napi::CallbackInfo&) { fd_.Reset(); }
};

}  // namespace netplane
