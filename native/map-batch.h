// SPDX-License-Identifier: Apache-2.0
// Batched writes, with a loop of single calls where the kernel or the map's type has no batch. Layer: native, used by
// map.cc.
#pragma once

#include <cstdint>
#include <optional>

#include "errors.h"
#include "map.h"

namespace netplane {

// `count` entries back to back
struct Batch {
  const uint8_t* keys;
  const uint8_t* values;
  uint32_t count;
};

std::optional<Failure> UpdateBatch(int fd, const MapShape& shape, const Batch& batch, uint32_t& done);
// missing keys are skipped
std::optional<Failure> DeleteBatch(int fd, const MapShape& shape, const Batch& batch, uint32_t& existed);

// Process-wide; off takes the way of kernels before 5.6.
void UseBatches(bool on);
bool BatchesInUse();

// How a kernel without the command, or a map type without the operation, answers. EINVAL may mean other things as
// well: the single call that follows then reports them.
bool MeansNoBatch(int err);

}  // namespace netplane
