// SPDX-License-Identifier: Apache-2.0
// Batched updates and deletions. Layer: native.
#include "map-batch.h"

#include <atomic>
#include <bpf/bpf.h>
#include <cerrno>

#include "args.h"
#include "kernel.h"

namespace netplane {
namespace {

std::atomic<bool> use_batches{true};

Failure Failed(int err, const char* op, uint32_t done) { return Failure{err, op, "", "", done}; }

std::optional<Failure> UpdateSingly(int fd, const MapShape& shape, const Batch& batch, uint32_t& done) {
  for (done = 0; done < batch.count; done++) {
    int result = bpf_map_update_elem(fd, batch.keys + size_t{done} * shape.key_bytes,
                                     batch.values + size_t{done} * shape.value_bytes, BPF_ANY);
    if (result < 0) return Failed(-result, "bpf_map_update_elem", done);
  }
  return std::nullopt;
}

std::optional<Failure> DeleteSingly(int fd, const MapShape& shape, const Batch& batch, uint32_t& existed) {
  for (uint32_t i = 0; i < batch.count; i++) {
    int result = bpf_map_delete_elem(fd, batch.keys + size_t{i} * shape.key_bytes);
    if (result == 0) existed++;
    else if (result != -ENOENT) return Failed(-result, "bpf_map_delete_elem", existed);
  }
  return std::nullopt;
}

// A kernel that failed before its loop leaves the count as it was: then nothing was done.
uint32_t Done(uint32_t reported, uint32_t asked) { return reported < asked ? reported : 0; }

}  // namespace

void UseBatches(bool on) { use_batches = on; }

bool BatchesInUse() { return use_batches; }

bool MeansNoBatch(int err) { return err == EINVAL || err == kEnotsupp || err == EOPNOTSUPP; }

std::optional<Failure> UpdateBatch(int fd, const MapShape& shape, const Batch& batch, uint32_t& done) {
  if (!BatchesInUse()) return UpdateSingly(fd, shape, batch, done);
  auto opts = Opts<bpf_map_batch_opts>();
  uint32_t count = batch.count;
  int result = count == 0 ? 0 : bpf_map_update_batch(fd, batch.keys, batch.values, &count, &opts);
  done = batch.count;
  if (result == 0) return std::nullopt;
  done = Done(count, batch.count);
  if (done == 0 && MeansNoBatch(-result)) return UpdateSingly(fd, shape, batch, done);
  return Failed(-result, "bpf_map_update_batch", done);
}

// The kernel stops at a key that is missing: go on behind it.
std::optional<Failure> DeleteBatch(int fd, const MapShape& shape, const Batch& batch, uint32_t& existed) {
  if (!BatchesInUse()) return DeleteSingly(fd, shape, batch, existed);
  auto opts = Opts<bpf_map_batch_opts>();
  for (uint32_t next = 0; next < batch.count; next++) {
    uint32_t asked = batch.count - next;
    uint32_t count = asked;
    int result = bpf_map_delete_batch(fd, batch.keys + size_t{next} * shape.key_bytes, &count, &opts);
    uint32_t done = result == 0 ? asked : Done(count, asked);
    existed += done;
    next += done;
    if (result == 0) break;
    if (next == 0 && MeansNoBatch(-result)) return DeleteSingly(fd, shape, batch, existed);
    if (result != -ENOENT) return Failed(-result, "bpf_map_delete_batch", existed);
  }
  return std::nullopt;
}

}  // namespace netplane
