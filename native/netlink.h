// SPDX-License-Identifier: Apache-2.0
// NetlinkSocket: moves bytes; messages are made and parsed in TypeScript. Layer: native.
#pragma once

#include <memory>
#include <vector>

#include "handle.h"
#include "poller.h"

namespace netplane {

struct OpenSocket {
  Fd fd;
  uint32_t port = 0;
};

class NetlinkSocket : public FdHandle<NetlinkSocket> {
 public:
  static constexpr napi_type_tag kTag = {0x6e6574706c616e65, 0x0b1ec70000000006};
  static constexpr ClassId kClass = ClassId::kNetlink;
  static constexpr const char* kName = "NetlinkSocket";

  static void Define(Napi::Env env, Napi::Object exports);
  explicit NetlinkSocket(const Napi::CallbackInfo& info);
  ~NetlinkSocket() override { Release(); }

 private:
  static Napi::Value Open(const Napi::CallbackInfo& info);
  static Napi::Value Port(const Napi::CallbackInfo& info);
  void Send(const Napi::CallbackInfo& info);
  Napi::Value Receive(const Napi::CallbackInfo& info);
  Napi::Value ReceiveWait(const Napi::CallbackInfo& info);
  void OnReadable(const Napi::CallbackInfo& info);
  void Close(const Napi::CallbackInfo& info);

  Napi::Value ReceiveNow(const char* op);
  void Watch(Napi::Function callback);
  void Unwatch();
  void Ready();
  void Release();

  uint32_t port_ = 0;
  std::vector<uint8_t> scratch_;
  std::shared_ptr<Poller> poller_;  // made by the first onReadable
  Napi::FunctionReference callback_;
  std::unique_ptr<Napi::AsyncContext> context_;
};

}  // namespace netplane
