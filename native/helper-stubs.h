// SPDX-License-Identifier: Apache-2.0
// Takes calls of missing helpers out of programs while libbpf loads them. Layer: native, used by load.cc and object.cc.
#pragma once

#include <bpf/libbpf.h>
#include <cstdint>
#include <set>

namespace netplane {

using HelperSet = std::set<uint32_t>;

// Hooks our section names, so that libbpf lets us see each program after relocation, with its subprograms appended.
// Once a process.
void InstallStubHandlers();

// Whether programs of this section are seen by the handlers.
bool CanStub(const bpf_program* program);

// While it lives, programs loaded on this thread have calls of these helpers replaced by `r0 = -EOPNOTSUPP`.
class StubScope {
 public:
  explicit StubScope(const HelperSet& helpers);
  ~StubScope();
  StubScope(const StubScope&) = delete;
  StubScope& operator=(const StubScope&) = delete;
};

}  // namespace netplane
