// SPDX-License-Identifier: Apache-2.0
// Facts about the machine and the process, locks among processes, and the switch for batch calls. Layer: native.
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <ctime>
#include <fcntl.h>
#include <memory>
#include <net/if.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "args.h"
#include "errors.h"
#include "exports.h"
#include "map-batch.h"
#include "netns.h"

namespace netplane {
namespace {

// SO_NETNS_COOKIE, newer than the headers we build with
constexpr int kSoNetnsCookie = 71;

Napi::Value PossibleCpus(const Napi::CallbackInfo& info) {
  const char* op = "libbpf_num_possible_cpus";
  return Napi::Number::New(info.Env(), Check(info.Env(), libbpf_num_possible_cpus(), op));
}

Napi::Value IfindexOf(const Napi::CallbackInfo& info) {
  std::string name = ToText(info[0], "if_nametoindex", "name");
  return Napi::Number::New(info.Env(), if_nametoindex(name.c_str()));
}

Napi::Value MonotonicNs(const Napi::CallbackInfo& info) {
  timespec now = {};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return Napi::Number::New(info.Env(), static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec));
}

// The resolution of the coarse clocks is one tick, whatever clock the machine has.
Napi::Value TicksPerSecond(const Napi::CallbackInfo& info) {
  timespec tick = {};
  if (clock_getres(CLOCK_MONOTONIC_COARSE, &tick) != 0) Throw(info.Env(), errno, "clock_getres");
  return Napi::Number::New(
      info.Env(), std::round(1e9 / (static_cast<double>(tick.tv_sec) * 1e9 + static_cast<double>(tick.tv_nsec))));
}

// /proc/sys/net shows the network namespace of the thread that opens it.
void WriteInNetns(const Napi::CallbackInfo& info) {
  const char* op = "write";
  std::string netns = ToText(info[0], op, "netns");
  std::string path = ToText(info[1], op, "path");
  std::string text = ToText(info[2], op, "text");
  int written = InNetns(netns, [&] {
    Fd file(open(path.c_str(), O_WRONLY | O_CLOEXEC));
    return file.open() ? static_cast<int>(write(file.get(), text.data(), text.size())) : -1;
  });
  if (written < 0) Throw(info.Env(), errno, op, path);
}

// A kernel without this option (before 5.14) has no cookie: 0, which no namespace has.
Napi::Value NetnsCookie(const Napi::CallbackInfo& info) {
  const char* op = "getsockopt";
  int fd = Check(info.Env(), socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), "socket");
  uint64_t cookie = 0;
  socklen_t size = sizeof(cookie);
  int result = getsockopt(fd, SOL_SOCKET, kSoNetnsCookie, &cookie, &size);
  int error = errno;
  close(fd);
  if (result != 0 && error != ENOPROTOOPT) Throw(info.Env(), error, op);
  char text[17];
  snprintf(text, sizeof(text), "%016llx", static_cast<unsigned long long>(result == 0 ? cookie : 0));
  return Napi::String::New(info.Env(), text);
}

// The file that has the name when it is locked counts: one that was removed meanwhile excludes no process.
Napi::Value LockFile(const Napi::CallbackInfo& info) {
  const char* op = "flock";
  std::string path = ToText(info[0], op, "path");
  if (path.empty() || path[0] != '/') ThrowInvalid(info.Env(), op, "path must be absolute");
  for (;;) {
    Fd file(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (!file.open()) Throw(info.Env(), errno, "open", path);
    struct stat held = {};
    if (fstat(file.get(), &held) != 0) Throw(info.Env(), errno, "fstat", path);
    // one that others may open they may have locked: it is no lock
    if (held.st_uid != geteuid() || (held.st_mode & 077) != 0) {
      if (unlink(path.c_str()) != 0 && errno != ENOENT) Throw(info.Env(), errno, "unlink", path);
      continue;
    }
    if (flock(file.get(), LOCK_EX | LOCK_NB) != 0) {
      if (errno == EWOULDBLOCK) return info.Env().Undefined();
      Throw(info.Env(), errno, op, path);
    }
    struct stat named = {};
    if (lstat(path.c_str(), &named) == 0 && held.st_dev == named.st_dev && held.st_ino == named.st_ino)
      return Napi::Number::New(info.Env(), file.Release());
  }
}

Napi::Value AbstractOwner(const Napi::CallbackInfo& info) {
  std::string name = ToText(info[0], "connect", "name");
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  // the first byte is zero: the name is in no file system
  if (name.size() + 1 > sizeof(address.sun_path)) ThrowInvalid(info.Env(), "connect", "name is too long");
  memcpy(address.sun_path + 1, name.data(), name.size());
  Fd peer(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!peer.open()) Throw(info.Env(), errno, "socket");
  socklen_t size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  if (connect(peer.get(), reinterpret_cast<sockaddr*>(&address), size) != 0) return info.Env().Undefined();
  ucred owner = {};
  socklen_t length = sizeof(owner);
  if (getsockopt(peer.get(), SOL_SOCKET, SO_PEERCRED, &owner, &length) != 0) Throw(info.Env(), errno, "getsockopt");
  return Napi::Number::New(info.Env(), owner.uid);
}

Napi::Value BtfById(const Napi::CallbackInfo& info) {
  const char* op = "btf__load_from_kernel_by_id";
  uint32_t id = ToU32(info[0], op, "id");
  LibbpfLog log;
  std::unique_ptr<btf, void (*)(btf*)> types(btf__load_from_kernel_by_id(id), btf__free);
  if (types == nullptr) Throw(info.Env(), errno, op, log.Text());
  uint32_t size = 0;
  const void* data = btf__raw_data(types.get(), &size);
  if (data == nullptr) Throw(info.Env(), errno, "btf__raw_data");
  return Napi::Buffer<uint8_t>::Copy(info.Env(), static_cast<const uint8_t*>(data), size);
}

Napi::Value LibbpfVersion(const Napi::CallbackInfo& info) {
  std::string text = std::to_string(libbpf_major_version()) + "." + std::to_string(libbpf_minor_version());
  return Napi::String::New(info.Env(), text);
}

void RaiseMemlock(const Napi::CallbackInfo& info) {
  rlimit limit{RLIM_INFINITY, RLIM_INFINITY};
  if (setrlimit(RLIMIT_MEMLOCK, &limit) != 0) Throw(info.Env(), errno, "setrlimit");
}

void SetBatchCalls(const Napi::CallbackInfo& info) { UseBatches(ToBool(info[0], "setBatchCalls", "on")); }

}  // namespace

void DefineSystem(Napi::Env env, Napi::Object exports) {
  exports.Set("possibleCpus", Napi::Function::New<PossibleCpus>(env, "possibleCpus"));
  exports.Set("ifindexOf", Napi::Function::New<IfindexOf>(env, "ifindexOf"));
  exports.Set("monotonicNs", Napi::Function::New<MonotonicNs>(env, "monotonicNs"));
  exports.Set("ticksPerSecond", Napi::Function::New<TicksPerSecond>(env, "ticksPerSecond"));
  exports.Set("netnsCookie", Napi::Function::New<NetnsCookie>(env, "netnsCookie"));
  exports.Set("writeInNetns", Napi::Function::New<WriteInNetns>(env, "writeInNetns"));
  exports.Set("lockFile", Napi::Function::New<LockFile>(env, "lockFile"));
  exports.Set("abstractOwner", Napi::Function::New<AbstractOwner>(env, "abstractOwner"));
  exports.Set("btfById", Napi::Function::New<BtfById>(env, "btfById"));
  exports.Set("libbpfVersion", Napi::Function::New<LibbpfVersion>(env, "libbpfVersion"));
  exports.Set("raiseMemlock", Napi::Function::New<RaiseMemlock>(env, "raiseMemlock"));
  exports.Set("setBatchCalls", Napi::Function::New<SetBatchCalls>(env, "setBatchCalls"));
}

}  // namespace netplane
