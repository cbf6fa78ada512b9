// SPDX-License-Identifier: Apache-2.0
// Whole maps: batches, or a walk from key to key. Layer: native.
#include "map-dump.h"

#include <algorithm>
#include <bpf/bpf.h>
#include <cerrno>
#include <cstring>
#include <numeric>

#include "args.h"
#include "map-batch.h"

namespace netplane {
namespace {

constexpr size_t kFirstChunk = 4096;
constexpr size_t kChunkBytes = 4 << 20;
constexpr int kMaxInterruptions = 100;

// A walk whose key vanished starts again from the first: give up only when that happens all the time.
size_t MostSteps(const MapShape& shape) { return size_t{shape.max_entries} * 4 + 1024; }

// In these a key has its place (bucket, index), and batches go from place to place: nothing comes twice.
bool BatchesAreUnique(const MapShape& shape) {
  switch (shape.type) {
    case BPF_MAP_TYPE_HASH:
    case BPF_MAP_TYPE_PERCPU_HASH:
    case BPF_MAP_TYPE_LRU_HASH:
    case BPF_MAP_TYPE_LRU_PERCPU_HASH:
    case BPF_MAP_TYPE_ARRAY:
    case BPF_MAP_TYPE_PERCPU_ARRAY:
      return true;
    default:
      return false;
  }
}

size_t FirstChunk(const MapShape& shape) {
  size_t entry = shape.key_bytes + shape.value_bytes;
  size_t fitting = std::max<size_t>(1, kChunkBytes / std::max<size_t>(1, entry));
  return std::clamp<size_t>(std::min<size_t>(shape.max_entries, fitting), 1, kFirstChunk);
}

class Reader {
 public:
  Reader(int fd, const MapShape& shape, Entries& out) : fd_(fd), shape_(shape), out_(out) {}

  // nullopt: no such operation here, and nothing was read
  std::optional<int> ReadBatches();
  int Walk();
  void DropDoubles();

 private:
  void Reserve(size_t more) {
    out_.keys.resize((out_.count + more) * shape_.key_bytes);
    out_.values.resize((out_.count + more) * shape_.value_bytes);
    room_ = out_.count + more;
  }
  uint8_t* KeyAt(size_t i) { return out_.keys.data() + i * shape_.key_bytes; }
  uint8_t* ValueAt(size_t i) { return out_.values.data() + i * shape_.value_bytes; }
  int OneBatch(uint8_t* from, uint8_t* next, uint32_t& count);

  int fd_;
  const MapShape& shape_;
  Entries& out_;
  size_t room_ = 0;
};

int Reader::OneBatch(uint8_t* from, uint8_t* next, uint32_t& count) {
  Reserve(count);
  auto opts = Opts<bpf_map_batch_opts>();
  return -bpf_map_lookup_batch(fd_, from, next, KeyAt(out_.count), ValueAt(out_.count), &count, &opts);
}

// ENOSPC: a bucket larger than the chunk. EINTR, EBUSY: an entry changed too often while it was read; the part before
// it is good. ENOENT: the end, also with a good part.
std::optional<int> Reader::ReadBatches() {
  std::vector<uint8_t> here(std::max<size_t>(shape_.key_bytes, 4)), next(here.size());
  size_t chunk = FirstChunk(shape_);
  int interruptions = 0;
  for (bool first = true;;) {
    uint32_t count = static_cast<uint32_t>(chunk);
    int err = OneBatch(first ? nullptr : here.data(), next.data(), count);
    if (first && MeansNoBatch(err)) return std::nullopt;
    if (err == ENOSPC && chunk <= shape_.max_entries) {
      chunk *= 2;
      continue;
    }
    bool interrupted = err == EINTR || err == EBUSY;
    if (err != 0 && err != ENOENT && !interrupted) return err;
    out_.count += count;
    if (err == ENOENT) return 0;
    if (interrupted && ++interruptions > kMaxInterruptions) return EAGAIN;
    if (out_.count > MostSteps(shape_)) return EAGAIN;
    if (count == 0) continue;  // `next` was not written
    here.swap(next);
    first = false;
  }
}

// The next key is asked for before the entry is read, which keeps the time in which it may vanish short.
int Reader::Walk() {
  std::vector<uint8_t> key(std::max<size_t>(shape_.key_bytes, 1)), next(key.size());
  int err = -bpf_map_get_next_key(fd_, nullptr, key.data());
  for (size_t steps = 0; err == 0; steps++) {
    if (steps > MostSteps(shape_)) return EAGAIN;
    err = -bpf_map_get_next_key(fd_, key.data(), next.data());
    if (out_.count == room_) Reserve(out_.count + FirstChunk(shape_));  // twice as much, and some
    int missing = -bpf_map_lookup_elem(fd_, key.data(), ValueAt(out_.count));
    if (missing != 0 && missing != ENOENT) return missing;
    if (missing == 0) memcpy(KeyAt(out_.count++), key.data(), shape_.key_bytes);
    key.swap(next);
  }
  return err == ENOENT ? 0 : err;
}

void Reader::DropDoubles() {
  size_t size = shape_.key_bytes;
  std::vector<uint32_t> order(out_.count);
  std::iota(order.begin(), order.end(), 0u);
  std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
    int by_key = memcmp(KeyAt(a), KeyAt(b), size);
    return by_key != 0 ? by_key < 0 : a < b;
  });
  std::vector<bool> drop(out_.count);
  for (size_t i = 1; i < order.size(); i++) {
    if (memcmp(KeyAt(order[i - 1]), KeyAt(order[i]), size) == 0) drop[order[i]] = true;
  }
  size_t kept = 0;
  for (size_t i = 0; i < out_.count; i++) {
    if (drop[i]) continue;
    memmove(KeyAt(kept), KeyAt(i), size);
    memmove(ValueAt(kept++), ValueAt(i), shape_.value_bytes);
  }
  out_.count = kept;
}

Napi::Value ToBuffer(Napi::Env env, std::vector<uint8_t>&& bytes, size_t size) {
  if (size == 0) return Napi::Buffer<uint8_t>::New(env, 0);
  auto* owned = new std::vector<uint8_t>(std::move(bytes));
  owned->resize(size);
  return Napi::Buffer<uint8_t>::NewOrCopy(
      env, owned->data(), size, [](Napi::Env, uint8_t*, std::vector<uint8_t>* hint) { delete hint; }, owned);
}

}  // namespace

std::optional<Failure> DumpWork::Run() {
  Reader reader(fd_.get(), shape_, entries_);
  std::optional<int> batches = BatchesInUse() ? reader.ReadBatches() : std::nullopt;
  int err = batches.has_value() ? *batches : reader.Walk();
  if (err != 0) return Failure{err, batches.has_value() ? "bpf_map_lookup_batch" : "bpf_map_get_next_key"};
  if (!batches.has_value() || !BatchesAreUnique(shape_)) reader.DropDoubles();
  return std::nullopt;
}

Napi::Object EntriesObject(Napi::Env env, Entries&& entries, const MapShape& shape) {
  Napi::Object result = Napi::Object::New(env);
  result.Set("count", static_cast<double>(entries.count));
  result.Set("keys", ToBuffer(env, std::move(entries.keys), entries.count * shape.key_bytes));
  result.Set("values", ToBuffer(env, std::move(entries.values), entries.count * shape.value_bytes));
  return result;
}

Napi::Value DumpWork::Finish(Napi::Env env) { return EntriesObject(env, std::move(entries_), shape_); }

}  // namespace netplane
