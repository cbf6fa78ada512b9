// SPDX-License-Identifier: Apache-2.0
// Reads arguments from JavaScript; whatever has the wrong type or length throws EINVAL. Layer: native.
#pragma once

#include <cstdint>
#include <cstring>
#include <napi.h>
#include <string>

namespace netplane {

// A view into a Uint8Array. Valid until JavaScript runs again: take views last, after every property was read.
struct Bytes {
  const uint8_t* data = nullptr;
  size_t size = 0;
};

Bytes ToBytes(const Napi::Value& value, const char* op, const char* what);
Bytes ToBytes(const Napi::Value& value, const char* op, const char* what, size_t exact);
uint32_t ToU32(const Napi::Value& value, const char* op, const char* what);
uint32_t ToU32Or(const Napi::Value& value, uint32_t fallback, const char* op, const char* what);
// an int the kernel will not take for negative
int ToInt(const Napi::Value& value, const char* op, const char* what);
// an interface index: 1 or more
int ToIfindex(const Napi::Value& value, const char* op);
bool ToBool(const Napi::Value& value, const char* op, const char* what);
// no NUL inside, since C would end there
std::string ToText(const Napi::Value& value, const char* op, const char* what);
Napi::Object ToObject(const Napi::Value& value, const char* op, const char* what);
Napi::Function ToFunction(const Napi::Value& value, const char* op, const char* what);

// libbpf's option structs: all zero, with their size in front
template <class T>
T Opts() {
  T opts;
  memset(&opts, 0, sizeof(opts));  // also the padding: libbpf refuses options with garbage behind what it knows
  opts.sz = sizeof(opts);
  return opts;
}

}  // namespace netplane
