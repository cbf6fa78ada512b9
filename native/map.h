// SPDX-License-Identifier: Apache-2.0
// BpfMap: one BPF map. Layer: native.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "handle.h"

namespace netplane {

// What never changes about a map, in this API's sizes: a per-CPU value is stride × possible CPUs.
struct MapShape {
  uint32_t type = 0;
  uint32_t key_bytes = 0;
  size_t value_bytes = 0;
  uint32_t max_entries = 0;
};

struct OpenMap {
  Fd fd;
  MapShape shape;
};

class BpfMap : public FdHandle<BpfMap> {
 public:
  static constexpr napi_type_tag kTag = {0x6e6574706c616e65, 0x0b1ec70000000002};
  static constexpr ClassId kClass = ClassId::kMap;
  static constexpr const char* kName = "BpfMap";

  static void Define(Napi::Env env, Napi::Object exports);
  static Napi::Object FromFd(Napi::Env env, Fd fd);
  explicit BpfMap(const Napi::CallbackInfo& info);

  const MapShape& shape() const { return shape_; }

 private:
  static Napi::Value Create(const Napi::CallbackInfo& info);
  static Napi::Value OpenPinned(const Napi::CallbackInfo& info);
  static Napi::Value OpenId(const Napi::CallbackInfo& info);
  static Napi::Value NextId(const Napi::CallbackInfo& info);

  Napi::Value Info(const Napi::CallbackInfo& info);
  static Napi::Value ValueBytes(const Napi::CallbackInfo& info);
  static Napi::Value KeyBytes(const Napi::CallbackInfo& info);
  Napi::Value Lookup(const Napi::CallbackInfo& info);
  void Update(const Napi::CallbackInfo& info);
  void UpdateFd(const Napi::CallbackInfo& info);
  Napi::Value Delete(const Napi::CallbackInfo& info);
  Napi::Value NextKey(const Napi::CallbackInfo& info);
  Napi::Value UpdateBatch(const Napi::CallbackInfo& info);
  Napi::Value DeleteBatch(const Napi::CallbackInfo& info);
  Napi::Value DeleteSame(const Napi::CallbackInfo& info);
  Napi::Value Dump(const Napi::CallbackInfo& info);
  Napi::Value ReadChunk(const Napi::CallbackInfo& info);
  void Pin(const Napi::CallbackInfo& info);
  void Close(const Napi::CallbackInfo&) { fd_.Reset(); }

  // the key in argument `index`; null for the maps that have none (queues), as the kernel wants it
  const void* Key(const Napi::CallbackInfo& info, size_t index, const char* op) const;

  MapShape shape_;
  std::vector<uint8_t> value_;  // reused by lookups
};

}  // namespace netplane
