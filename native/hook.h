// SPDX-License-Identifier: Apache-2.0
// Reads where a program is to be attached: directions, cgroup hooks, cgroup directories. Layer: native, used by
// attach.cc, link.cc, tc.cc.
#pragma once

#include <linux/bpf.h>
#include <napi.h>

#include "handle.h"

namespace netplane {

enum class Direction { kIngress, kEgress };

Direction ToDirection(const Napi::Value& value, const char* op);
bpf_attach_type ToTcxAttachType(const Napi::Value& value, const char* op);
bpf_attach_type ToCgroupAttachType(const Napi::Value& value, const char* op);
// an fd of the directory
Fd OpenCgroup(const Napi::Value& path, const char* op);

}  // namespace netplane
