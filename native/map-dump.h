// SPDX-License-Identifier: Apache-2.0
// Reading a whole map while others write to it. Layer: native, used by map.cc.
#pragma once

#include <napi.h>
#include <optional>
#include <vector>

#include "errors.h"
#include "map.h"

namespace netplane {

// Entries back to back; the vectors may be longer than `count` says.
struct Entries {
  std::vector<uint8_t> keys;
  std::vector<uint8_t> values;
  size_t count = 0;
};

// { keys, values, count }
Napi::Object EntriesObject(Napi::Env env, Entries&& entries, const MapShape& shape);

// Work for Worker. Owns a duplicate of the map's fd, so that the handle may be closed meanwhile.
class DumpWork {
 public:
  DumpWork(Fd fd, const MapShape& shape) : fd_(std::move(fd)), shape_(shape) {}
  std::optional<Failure> Run();
  Napi::Value Finish(Napi::Env env);

 private:
  Fd fd_;
  MapShape shape_;
  Entries entries_;
};

}  // namespace netplane
