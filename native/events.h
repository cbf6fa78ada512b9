// SPDX-License-Identifier: Apache-2.0
// EventReader: a ring buffer or perf event array, drained in batches. Layer: native.
#pragma once

#include <bpf/libbpf.h>
#include <memory>
#include <vector>

#include "handle.h"
#include "poller.h"

namespace netplane {

struct RingCloser {
  void operator()(ring_buffer* ring) const { ring_buffer__free(ring); }
};
struct PerfCloser {
  void operator()(perf_buffer* perf) const { perf_buffer__free(perf); }
};

class EventReader : public Handle<EventReader> {
 public:
  static constexpr napi_type_tag kTag = {0x6e6574706c616e65, 0x0b1ec70000000005};
  static constexpr ClassId kClass = ClassId::kEvents;
  static constexpr const char* kName = "EventReader";

  struct Init {
    Fd map;
    uint32_t map_type;
    uint32_t max_bytes;
    uint32_t perf_pages;
    Napi::FunctionReference on_batch;
  };

  static void Define(Napi::Env env, Napi::Object exports);
  explicit EventReader(const Napi::CallbackInfo& info);
  ~EventReader() override { Release(); }

 private:
  static Napi::Value Open(const Napi::CallbackInfo& info);
  Napi::Value Lost(const Napi::CallbackInfo& info);
  void Close(const Napi::CallbackInfo& info);

  static int OnRingRecord(void* self, void* data, size_t size);
  static bpf_perf_event_ret OnPerfRecord(void* self, int cpu, perf_event_header* event);

  int OpenRing();
  int OpenPerf(uint32_t pages);
  // keeps one record; false: the batch is full with it
  bool Keep(const void* data, size_t size);
  void Drain();
  void Release();

  Fd map_;  // libbpf uses the number until the buffer is freed
  std::unique_ptr<ring_buffer, RingCloser> ring_;
  std::unique_ptr<perf_buffer, PerfCloser> perf_;
  std::shared_ptr<Poller> poller_;
  Napi::FunctionReference on_batch_;
  std::unique_ptr<Napi::AsyncContext> context_;
  std::vector<uint8_t> batch_;
  uint32_t count_ = 0;
  uint32_t max_bytes_ = 0;
  double lost_ = 0;
};

}  // namespace netplane
