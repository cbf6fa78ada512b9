// SPDX-License-Identifier: Apache-2.0
// Pins: the same for maps, programs and links. Layer: native.
#include "handle.h"

#include <bpf/bpf.h>
#include <string_view>

#include "args.h"

namespace netplane {

PinKind KindOf(int fd) {
  std::string path = "/proc/self/fd/" + std::to_string(fd);
  char target[64];
  ssize_t size = readlink(path.c_str(), target, sizeof(target));
  std::string_view name(target, size < 0 ? 0 : static_cast<size_t>(size));
  auto has = [name](const char* part) { return name.find(part) != std::string_view::npos; };
  if (has("bpf-map")) return PinKind::kMap;
  if (has("bpf-prog")) return PinKind::kProgram;
  if (has("bpf_link") || has("bpf-link")) return PinKind::kLink;
  return PinKind::kOther;
}

Fd OpenPin(const Napi::CallbackInfo& info, PinKind kind, const char* kind_name) {
  const char* op = "bpf_obj_get";
  std::string path = ToText(info[0], op, "path");
  Fd fd = OwnFd(info.Env(), bpf_obj_get(path.c_str()), op, path);
  if (KindOf(fd.get()) != kind) ThrowInvalid(info.Env(), op, path + " is no " + kind_name);
  return fd;
}

void PinFd(const Napi::CallbackInfo& info, int fd) {
  const char* op = "bpf_obj_pin";
  std::string path = ToText(info[0], op, "path");
  Check(info.Env(), bpf_obj_pin(fd, path.c_str()), op, path);
}

}  // namespace netplane
