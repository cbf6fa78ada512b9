// SPDX-License-Identifier: Apache-2.0
// EventReader: records leave the kernel's buffer in one go and reach JavaScript as one Buffer. Layer: native.
#include "events.h"

#include <bpf/bpf.h>
#include <linux/perf_event.h>

#include "args.h"
#include "map.h"

namespace netplane {
namespace {

constexpr uint32_t kDefaultBytes = 1 << 20;
constexpr uint32_t kDefaultPages = 16;
constexpr size_t kAlign = 8;
// any negative number makes libbpf stop after the record it just gave us
constexpr int kEnough = -1;

struct PerfSample {
  perf_event_header header;
  uint32_t size;
  char data[];
};

struct PerfLost {
  perf_event_header header;
  uint64_t id;
  uint64_t lost;
};

}  // namespace

EventReader::EventReader(const Napi::CallbackInfo& info) : Handle<EventReader>(info) {
  Init init = Take<Init>(info);
  map_ = std::move(init.map);
  max_bytes_ = init.max_bytes;
  on_batch_ = std::move(init.on_batch);
  LibbpfLog log;
  int epoll = init.map_type == BPF_MAP_TYPE_RINGBUF ? OpenRing() : OpenPerf(init.perf_pages);
  Check(info.Env(), epoll, init.map_type == BPF_MAP_TYPE_RINGBUF ? "ring_buffer__new" : "perf_buffer__new_raw",
        log.Text());
  context_ = std::make_unique<Napi::AsyncContext>(info.Env(), "netplane.EventReader");
  poller_ = Poller::Open(info.Env(), epoll, [this] { Drain(); });
  poller_->Start();
  // A perf buffer forgets that it is readable as soon as it was asked, and being added to the loop's epoll, in the turn
  // that follows, asks: so look once more after that.
  poller_->Again(2);
  Ref();  // until close(): the loop calls us
}

int EventReader::OpenRing() {
  ring_.reset(ring_buffer__new(map_.get(), OnRingRecord, this, nullptr));
  return ring_ == nullptr ? -errno : ring_buffer__epoll_fd(ring_.get());
}

int EventReader::OpenPerf(uint32_t pages) {
  perf_event_attr attr = {};
  attr.size = sizeof(attr);
  attr.type = PERF_TYPE_SOFTWARE;
  attr.config = PERF_COUNT_SW_BPF_OUTPUT;
  attr.sample_type = PERF_SAMPLE_RAW;
  attr.sample_period = 1;
  attr.wakeup_events = 1;
  perf_.reset(perf_buffer__new_raw(map_.get(), pages, &attr, OnPerfRecord, this, nullptr));
  return perf_ == nullptr ? -errno : perf_buffer__epoll_fd(perf_.get());
}

Napi::Value EventReader::Open(const Napi::CallbackInfo& info) {
  const char* op = "EventReader.open";
  Napi::Env env = info.Env();
  Napi::Function on_batch = ToFunction(info[1], op, "onBatch");
  Napi::Object options = info[2].IsUndefined() ? Napi::Object::New(env) : ToObject(info[2], op, "options");
  uint32_t max_bytes = ToU32Or(options.Get("maxBytes"), kDefaultBytes, op, "maxBytes");
  uint32_t pages = ToU32Or(options.Get("perfPages"), kDefaultPages, op, "perfPages");
  BpfMap& map = BpfMap::From(info[0], op);
  uint32_t type = map.shape().type;
  if (type != BPF_MAP_TYPE_RINGBUF && type != BPF_MAP_TYPE_PERF_EVENT_ARRAY) {
    ThrowInvalid(env, op, "the map is neither a ring buffer nor a perf event array");
  }
  Fd fd = DuplicateFd(env, map.fd(op), op);
  return Make(env, Init{std::move(fd), type, max_bytes, pages, Napi::Persistent(on_batch)});
}

// Exceptions must not pass through libbpf: for want of memory a record is lost.
bool EventReader::Keep(const void* data, size_t size) {
  try {
    size_t old = batch_.size();
    batch_.resize(old + (sizeof(uint32_t) + size + kAlign - 1) / kAlign * kAlign);
    uint32_t length = static_cast<uint32_t>(size);
    memcpy(&batch_[old], &length, sizeof(length));
    memcpy(&batch_[old + sizeof(length)], data, size);
    count_++;
  } catch (const std::bad_alloc&) {
    lost_++;
  }
  return batch_.size() < max_bytes_;
}

int EventReader::OnRingRecord(void* self, void* data, size_t size) {
  return static_cast<EventReader*>(self)->Keep(data, size) ? 0 : kEnough;
}

bpf_perf_event_ret EventReader::OnPerfRecord(void* self, int, perf_event_header* event) {
  auto* reader = static_cast<EventReader*>(self);
  if (event->type == PERF_RECORD_LOST) {
    reader->lost_ += static_cast<double>(reinterpret_cast<PerfLost*>(event)->lost);
  } else if (event->type == PERF_RECORD_SAMPLE) {
    auto* sample = reinterpret_cast<PerfSample*>(event);
    if (!reader->Keep(sample->data, sample->size)) return LIBBPF_PERF_EVENT_DONE;
  }
  return LIBBPF_PERF_EVENT_CONT;
}

// A full batch means that there may be more. A perf buffer signals new records only once, so do not wait for it.
void EventReader::Drain() {
  Napi::Env env = Env();
  Napi::HandleScope scope(env);
  batch_.clear();
  count_ = 0;
  if (ring_ != nullptr) ring_buffer__consume(ring_.get());
  else perf_buffer__consume(perf_.get());
  if (batch_.size() >= max_bytes_) poller_->Again(1);
  if (count_ == 0) return;
  auto records = Napi::Buffer<uint8_t>::Copy(env, batch_.data(), batch_.size());
  CallFromLoop(env, on_batch_, {records, Napi::Number::New(env, count_)}, *context_);
}

Napi::Value EventReader::Lost(const Napi::CallbackInfo& info) { return Napi::Number::New(info.Env(), lost_); }

void EventReader::Release() {
  if (poller_ == nullptr) return;
  poller_->Close();
  poller_.reset();
  ring_.reset();
  perf_.reset();
  map_.Reset();
}

void EventReader::Close(const Napi::CallbackInfo&) {
  if (poller_ == nullptr) return;
  Release();
  Unref();
}

void EventReader::Define(Napi::Env env, Napi::Object exports) {
  Export(env, exports,
         DefineClass(env, kName,
                     {
                         StaticMethod<&EventReader::Open>("open"),
                         InstanceMethod<&EventReader::Lost>("lost"),
                         InstanceMethod<&EventReader::Close>("close"),
                     }));
}

}  // namespace netplane
