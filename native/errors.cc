// SPDX-License-Identifier: Apache-2.0
// Errors with code, errno and operation, and libbpf's log as their detail. Layer: native.
#include "errors.h"

#include <bpf/libbpf.h>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>

#include "kernel.h"

namespace netplane {
namespace {

constexpr int kFirstLibbpfError = 4000;

// libbpf calls back on the thread that called it: no lock needed
thread_local std::string* current_log = nullptr;

int Collect(enum libbpf_print_level level, const char* format, va_list args) {
  if (current_log == nullptr || level == LIBBPF_DEBUG) return 0;
  va_list again;
  va_copy(again, args);
  int size = vsnprintf(nullptr, 0, format, again);
  va_end(again);
  if (size <= 0) return 0;
  size_t old = current_log->size();
  current_log->resize(old + static_cast<size_t>(size) + 1);
  vsnprintf(&(*current_log)[old], static_cast<size_t>(size) + 1, format, args);
  current_log->pop_back();
  return size;
}

std::string ErrnoText(int err) {
  if (err == kEnotsupp) return "Operation is not supported";
  char text[128];
  if (err >= kFirstLibbpfError) {
    libbpf_strerror(err, text, sizeof(text));
    return text;
  }
  return strerror_r(err, text, sizeof(text));
}

}  // namespace

std::string ErrnoName(int err) {
  if (err == kEnotsupp) return "ENOTSUPP";
  if (err >= kFirstLibbpfError) return "LIBBPF_" + std::to_string(err);
  const char* name = strerrorname_np(err);
  return name != nullptr ? name : "E" + std::to_string(err);
}

Napi::Error ToError(Napi::Env env, const Failure& failure) {
  std::string text = failure.op + ": " + ErrnoText(failure.err);
  if (!failure.detail.empty()) text += " (" + failure.detail + ")";
  Napi::Error error = Napi::Error::New(env, text);
  error.Set("code", Napi::String::New(env, ErrnoName(failure.err)));
  error.Set("errno", Napi::Number::New(env, failure.err));
  error.Set("op", Napi::String::New(env, failure.op));
  if (!failure.verifier_log.empty()) error.Set("verifierLog", Napi::String::New(env, failure.verifier_log));
  if (failure.done.has_value()) error.Set("done", Napi::Number::New(env, *failure.done));
  return error;
}

void Throw(Napi::Env env, int err, const char* op, const std::string& detail) {
  throw ToError(env, Failure{std::abs(err), op, detail});
}

void ThrowInvalid(Napi::Env env, const char* op, const std::string& detail) { Throw(env, EINVAL, op, detail); }

LibbpfLog::LibbpfLog() { current_log = &text_; }

LibbpfLog::~LibbpfLog() { current_log = nullptr; }

std::string LibbpfLog::Text() const {
  std::string line;
  for (char c : text_) {
    if (c != '\n') line += c;
    else line += "; ";
  }
  while (!line.empty() && (line.back() == ' ' || line.back() == ';')) line.pop_back();
  return line;
}

void LibbpfLog::Install() {
  static std::once_flag once;
  std::call_once(once, [] { libbpf_set_print(Collect); });
}

}  // namespace netplane
