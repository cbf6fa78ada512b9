// SPDX-License-Identifier: Apache-2.0
// Loading an object into the kernel, off the JS thread. Layer: native, used by object.cc.
#pragma once

#include <bpf/libbpf.h>
#include <memory>
#include <napi.h>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "errors.h"
#include "helper-stubs.h"

namespace netplane {

// Work for Worker: bpf_object__load. The object outlives it; no other code touches it meanwhile.
class LoadWork {
 public:
  LoadWork(bpf_object* object, HelperSet stubs, bool statistics)
      : object_(object), stubs_(std::move(stubs)), statistics_(statistics) {}
  std::optional<Failure> Run();
  // With statistics an object: by program what the verifier says of its work.
  Napi::Value Finish(Napi::Env env);

 private:
  // Where the verifier writes a program's statistics.
  struct Told {
    bpf_program* program;
    std::unique_ptr<char[]> text;
  };

  std::vector<Told> AskStatistics();

  bpf_object* object_;
  HelperSet stubs_;
  bool statistics_;
  std::vector<std::pair<std::string, std::string>> told_;
};

}  // namespace netplane
