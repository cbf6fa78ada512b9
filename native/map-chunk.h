// SPDX-License-Identifier: Apache-2.0
// A map read part by part, and rows deleted that are as they were read. Layer: native, used by map.cc.
#pragma once

#include <napi.h>
#include <optional>
#include <vector>

#include "errors.h"
#include "map-batch.h"
#include "map-dump.h"
#include "map.h"

namespace netplane {

// Work for Worker. Owns a duplicate of the map's fd, so that the handle may be closed meanwhile.
class ChunkWork {
 public:
  // `cursor`: as given by the chunk before; empty: from the start
  ChunkWork(Fd fd, const MapShape& shape, std::vector<uint8_t> cursor, uint32_t room);
  std::optional<Failure> Run();
  Napi::Value Finish(Napi::Env env);

 private:
  // nullopt: no such operation here, and nothing was read
  std::optional<int> ReadBatch();
  int Walk();
  void Resize(uint32_t room);
  uint8_t* KeyAt(size_t i) { return entries_.keys.data() + i * shape_.key_bytes; }
  uint8_t* ValueAt(size_t i) { return entries_.values.data() + i * shape_.value_bytes; }

  Fd fd_;
  MapShape shape_;
  std::vector<uint8_t> cursor_;
  uint32_t room_;
  Entries entries_;
  std::vector<uint8_t> next_;  // empty: that was all
};

// Bytes of a cursor: a batch's token, or a key
size_t CursorBytes(const MapShape& shape);

// Deletes each entry that still has the value in `batch`. A write between its lookup and its deletion, less than a
// microsecond, is lost.
std::optional<Failure> DeleteSame(int fd, const MapShape& shape, const Batch& batch, uint32_t& deleted);

}  // namespace netplane
