// SPDX-License-Identifier: Apache-2.0
// Loading an object into the kernel, off the JS thread. Layer: native, used by object.cc.
#pragma once

#include <bpf/libbpf.h>
#include <napi.h>
#include <optional>

#include "errors.h"
#include "helper-stubs.h"

namespace netplane {

// Work for Worker: bpf_object__load. The object outlives it; nobody else touches it meanwhile.
class LoadWork {
 public:
  LoadWork(bpf_object* object, HelperSet stubs) : object_(object), stubs_(std::move(stubs)) {}
  std::optional<Failure> Run();
  Napi::Value Finish(Napi::Env env) { return env.Undefined(); }

 private:
  bpf_object* object_;
  HelperSet stubs_;
};

}  // namespace netplane
