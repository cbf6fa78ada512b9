// SPDX-License-Identifier: Apache-2.0
// Handles: JavaScript objects that own a kernel object, made only by C++, each with a type tag. Layer: native.
#pragma once

#include <array>
#include <cerrno>
#include <fcntl.h>
#include <napi.h>
#include <unistd.h>
#include <utility>

#include "errors.h"

namespace netplane {

// Owns a file descriptor.
class Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Fd& operator=(Fd&& other) noexcept {
    if (this != &other) Reset(std::exchange(other.fd_, -1));
    return *this;
  }
  ~Fd() { Reset(); }

  int get() const { return fd_; }
  bool open() const { return fd_ >= 0; }
  void Reset(int fd = -1) {
    if (fd_ >= 0) ::close(fd_);
    fd_ = fd;
  }

  // the caller closes it
  int Release() { return std::exchange(fd_, -1); }

  // an independent duplicate; not open when that failed, with errno set
  static Fd Duplicate(int fd) { return Fd(fcntl(fd, F_DUPFD_CLOEXEC, 0)); }

 private:
  int fd_ = -1;
};

enum class ClassId : size_t { kObject, kMap, kProgram, kLink, kEvents, kNetlink, kCount };

// Per environment (main thread or worker): the constructors, and what the one being called is to start with.
struct AddonData {
  std::array<Napi::FunctionReference, static_cast<size_t>(ClassId::kCount)> constructors;
  const napi_type_tag* pending_tag = nullptr;
  void* pending = nullptr;
};

// Sets what the next constructor starts with, and takes it back when that never ran.
class Pending {
 public:
  Pending(AddonData* data, const napi_type_tag* tag, void* init) : data_(data) {
    data_->pending_tag = tag;
    data_->pending = init;
  }
  ~Pending() { data_->pending_tag = nullptr; }
  Pending(const Pending&) = delete;
  Pending& operator=(const Pending&) = delete;

 private:
  AddonData* data_;
};

// T has: kTag, kClass, kName, struct Init, and a constructor taking CallbackInfo that calls Handle::Take.
template <class T>
class Handle : public Napi::ObjectWrap<T> {
 public:
  explicit Handle(const Napi::CallbackInfo& info) : Napi::ObjectWrap<T>(info) {}

  template <class Init>
  static Napi::Object Make(Napi::Env env, Init init) {
    auto* data = env.GetInstanceData<AddonData>();
    Pending pending(data, &T::kTag, &init);
    return data->constructors[static_cast<size_t>(T::kClass)].New({});
  }

  static void Export(Napi::Env env, Napi::Object exports, Napi::Function constructor) {
    auto* data = env.GetInstanceData<AddonData>();
    data->constructors[static_cast<size_t>(T::kClass)] = Napi::Persistent(constructor);
    exports.Set(T::kName, constructor);
  }

  // A read-only property. V8 checks the receiver of methods, but not that of accessors: the getter does, with From.
  template <Napi::Value (*getter)(const Napi::CallbackInfo&)>
  static Napi::ClassPropertyDescriptor<T> Property(const char* name) {
    return Napi::ClassPropertyDescriptor<T>(Napi::PropertyDescriptor::Accessor<getter>(name));
  }

  static bool Is(const Napi::Value& value) {
    return value.IsObject() && value.As<Napi::Object>().CheckTypeTag(&T::kTag);
  }

  static T& From(const Napi::Value& value, const char* op) {
    if (!Is(value)) ThrowInvalid(value.Env(), op, std::string("not a ") + T::kName);
    return *T::Unwrap(value.As<Napi::Object>());
  }

 protected:
  // What Make was given. JavaScript's own `new` has nothing pending and throws.
  template <class Init>
  static Init Take(const Napi::CallbackInfo& info) {
    auto* data = info.Env().GetInstanceData<AddonData>();
    if (data->pending_tag != &T::kTag) {
      ThrowInvalid(info.Env(), T::kName, "has no public constructor");
    }
    data->pending_tag = nullptr;
    info.This().As<Napi::Object>().TypeTag(&T::kTag);
    return std::move(*static_cast<Init*>(std::exchange(data->pending, nullptr)));
  }
};

// A handle whose kernel object is one fd. The finaliser closes it when close() was not called.
template <class T>
class FdHandle : public Handle<T> {
 public:
  explicit FdHandle(const Napi::CallbackInfo& info) : Handle<T>(info) {}

  int fd(const char* op) const {
    if (!fd_.open()) Throw(this->Env(), EBADF, op, std::string(T::kName) + " is closed");
    return fd_.get();
  }

 protected:
  Fd fd_;
};

// Of a walk over the ids of all that there is: undefined after the last.
inline Napi::Value IdOrNone(Napi::Env env, int result, uint32_t id, const char* op) {
  if (result == -ENOENT) return env.Undefined();
  Check(env, result, op);
  return Napi::Number::New(env, id);
}

// fd results of system calls made by libbpf: negative errno or an fd
inline Fd OwnFd(Napi::Env env, int result, const char* op, const std::string& detail = "") {
  return Fd(Check(env, result, op, detail));
}

inline Fd DuplicateFd(Napi::Env env, int fd, const char* op) {
  Fd copy = Fd::Duplicate(fd);
  if (!copy.open()) Throw(env, errno, op, "duplicate");
  return copy;
}

// Which kind of BPF object a pin holds, as /proc names it: bpf_obj_get does not say.
enum class PinKind { kMap, kProgram, kLink, kOther };
PinKind KindOf(int fd);
// bpf_obj_get; EINVAL when the pin holds something else
Fd OpenPin(const Napi::CallbackInfo& info, PinKind kind, const char* kind_name);
// bpf_obj_pin of the path in the first argument
void PinFd(const Napi::CallbackInfo& info, int fd);

}  // namespace netplane
