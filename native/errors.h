// SPDX-License-Identifier: Apache-2.0
// How a failed call of the kernel or libbpf becomes a JavaScript error. Layer: native, used by every file.
#pragma once

#include <cstdint>
#include <napi.h>
#include <optional>
#include <string>

namespace netplane {

// What a call that may run on any thread reports; only the JS thread makes an Error of it.
struct Failure {
  int err = 0;  // errno, positive
  std::string op;
  std::string detail = {};
  std::string verifier_log = {};
  std::optional<uint32_t> done = std::nullopt;
};

// "ENOENT"; libbpf's own codes, which start at 4000, become "LIBBPF_4003"
std::string ErrnoName(int err);

Napi::Error ToError(Napi::Env env, const Failure& failure);

// `err` may have either sign
[[noreturn]] void Throw(Napi::Env env, int err, const char* op, const std::string& detail = "");
[[noreturn]] void ThrowInvalid(Napi::Env env, const char* op, const std::string& detail);

// For calls that give an fd or 0, or a negative errno
inline int Check(Napi::Env env, int result, const char* op, const std::string& detail = "") {
  if (result < 0) Throw(env, result, op, detail);
  return result;
}

// Collects what libbpf prints on this thread while it lives, instead of stderr. They do not nest.
class LibbpfLog {
 public:
  LibbpfLog();
  ~LibbpfLog();
  LibbpfLog(const LibbpfLog&) = delete;
  LibbpfLog& operator=(const LibbpfLog&) = delete;

  // one line: lines are joined by "; "
  std::string Text() const;

  // Sends libbpf's output here; without a collector it is dropped. Once a process.
  static void Install();

 private:
  std::string text_;
};

}  // namespace netplane
