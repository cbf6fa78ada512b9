// SPDX-License-Identifier: Apache-2.0
// Parts of maps: one batch, or some steps from key to key. Layer: native.
#include "map-chunk.h"

#include <algorithm>
#include <bpf/bpf.h>
#include <cerrno>
#include <cstring>

#include "args.h"

namespace netplane {
namespace {

constexpr size_t kMostBytes = 4 << 20;
constexpr int kMaxInterruptions = 100;

uint32_t Room(const MapShape& shape, uint32_t asked) {
  size_t fitting = kMostBytes / std::max<size_t>(1, shape.key_bytes + shape.value_bytes);
  return static_cast<uint32_t>(
      std::clamp<size_t>(std::min<size_t>(asked, shape.max_entries), 1, std::max<size_t>(1, fitting)));
}

}  // namespace

size_t CursorBytes(const MapShape& shape) { return std::max<size_t>(shape.key_bytes, 4); }

ChunkWork::ChunkWork(Fd fd, const MapShape& shape, std::vector<uint8_t> cursor, uint32_t room)
    : fd_(std::move(fd)), shape_(shape), cursor_(std::move(cursor)), room_(Room(shape, room)) {}

void ChunkWork::Resize(uint32_t room) {
  entries_.keys.resize(size_t{room} * shape_.key_bytes);
  entries_.values.resize(size_t{room} * shape_.value_bytes);
}

// ENOSPC: a bucket larger than the room. EINTR, EBUSY: an entry changed too often while it was read; the part before it
// is good. ENOENT: the end, also with a good part.
std::optional<int> ChunkWork::ReadBatch() {
  auto opts = Opts<bpf_map_batch_opts>();
  std::vector<uint8_t> next(CursorBytes(shape_));
  for (int interruptions = 0;;) {
    Resize(room_);
    uint32_t count = room_;
    int err = -bpf_map_lookup_batch(fd_.get(), cursor_.empty() ? nullptr : cursor_.data(), next.data(),
                                    entries_.keys.data(), entries_.values.data(), &count, &opts);
    if (MeansNoBatch(err)) return std::nullopt;
    if (err == ENOSPC && room_ <= shape_.max_entries) {
      room_ *= 2;
      continue;
    }
    bool interrupted = err == EINTR || err == EBUSY;
    if (err != 0 && err != ENOENT && !interrupted) return err;
    if (interrupted && count == 0) {  // `next` was not written
      if (++interruptions > kMaxInterruptions) return EAGAIN;
      continue;
    }
    entries_.count = count;
    if (err != ENOENT) next_ = std::move(next);
    return 0;
  }
}

// A cursor whose key is gone starts again from the first.
int ChunkWork::Walk() {
  Resize(room_);
  std::vector<uint8_t> here = cursor_, next(CursorBytes(shape_));
  for (uint32_t steps = 0; steps < room_; steps++) {
    int err = -bpf_map_get_next_key(fd_.get(), here.empty() ? nullptr : here.data(), next.data());
    if (err == ENOENT) return 0;
    if (err != 0) return err;
    here = next;
    err = -bpf_map_lookup_elem(fd_.get(), here.data(), ValueAt(entries_.count));
    if (err != 0 && err != ENOENT) return err;
    if (err == 0 && shape_.key_bytes > 0) memcpy(KeyAt(entries_.count++), here.data(), shape_.key_bytes);
  }
  next_ = std::move(here);
  return 0;
}

std::optional<Failure> ChunkWork::Run() {
  std::optional<int> batch = BatchesInUse() ? ReadBatch() : std::nullopt;
  int err = batch.has_value() ? *batch : Walk();
  if (err != 0) return Failure{err, batch.has_value() ? "bpf_map_lookup_batch" : "bpf_map_get_next_key"};
  return std::nullopt;
}

Napi::Value ChunkWork::Finish(Napi::Env env) {
  Napi::Object result = EntriesObject(env, std::move(entries_), shape_);
  if (next_.empty()) result.Set("next", env.Undefined());
  else result.Set("next", Napi::Buffer<uint8_t>::Copy(env, next_.data(), next_.size()));
  return result;
}

std::optional<Failure> DeleteSame(int fd, const MapShape& shape, const Batch& batch, uint32_t& deleted) {
  std::vector<uint8_t> value(shape.value_bytes);
  for (uint32_t i = 0; i < batch.count; i++) {
    const uint8_t* key = batch.keys + size_t{i} * shape.key_bytes;
    int result = bpf_map_lookup_elem(fd, key, value.data());
    if (result == -ENOENT) continue;
    if (result < 0) return Failure{-result, "bpf_map_lookup_elem", "", "", deleted};
    if (memcmp(value.data(), batch.values + size_t{i} * shape.value_bytes, shape.value_bytes) != 0) continue;
    result = bpf_map_delete_elem(fd, key);
    if (result == 0) deleted++;
    else if (result != -ENOENT) return Failure{-result, "bpf_map_delete_elem", "", "", deleted};
  }
  return std::nullopt;
}

}  // namespace netplane
