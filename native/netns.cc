// SPDX-License-Identifier: Apache-2.0
// Network namespaces: one that nothing but a descriptor keeps, and sockets in another one. Layer: native.
#include <netinet/in.h>
#include <sys/socket.h>

#include "args.h"
#include "errors.h"
#include "exports.h"
#include "netns.h"

namespace netplane {
namespace {

// A thread that ends leaves its namespace to the descriptor alone.
Napi::Value MakeNetns(const Napi::CallbackInfo& info) {
  int fd = -1;
  int error = 0;
  std::thread([&] {
    if (unshare(CLONE_NEWNET) == 0) fd = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
    error = errno;
  }).join();
  if (fd < 0) Throw(info.Env(), error, "unshare");
  return Napi::Number::New(info.Env(), fd);
}

// of what the socket sends, as the kernel writes it in each packet
int SetHopLimit(int fd, int domain, int hops) {
  if (domain == AF_INET) return setsockopt(fd, IPPROTO_IP, IP_TTL, &hops, sizeof hops);
  return setsockopt(fd, IPPROTO_IPV6, IPV6_UNICAST_HOPS, &hops, sizeof hops);
}

Napi::Value SocketInNetns(const Napi::CallbackInfo& info) {
  const char* op = "socket";
  std::string netns = ToText(info[0], op, "netns");
  std::string family = ToText(info[1], op, "family");
  std::string protocol = ToText(info[2], op, "protocol");
  if (family != "IPv4" && family != "IPv6") ThrowInvalid(info.Env(), op, "family must be IPv4 or IPv6");
  if (protocol != "TCP" && protocol != "UDP") ThrowInvalid(info.Env(), op, "protocol must be TCP or UDP");
  int domain = family == "IPv4" ? AF_INET : AF_INET6;
  int type = (protocol == "TCP" ? SOCK_STREAM : SOCK_DGRAM) | SOCK_CLOEXEC | SOCK_NONBLOCK;
  int hops = info[3].IsUndefined() ? 0 : ToInt(info[3], op, "hopLimit");
  Fd fd(InNetns(netns, [=] { return socket(domain, type, 0); }));
  if (!fd.open()) Throw(info.Env(), errno, op, netns);
  if (!info[3].IsUndefined() && SetHopLimit(fd.get(), domain, hops)) Throw(info.Env(), errno, "setsockopt", "hopLimit");
  return Napi::Number::New(info.Env(), fd.Release());
}

}  // namespace

void DefineNetns(Napi::Env env, Napi::Object exports) {
  exports.Set("makeNetns", Napi::Function::New<MakeNetns>(env, "makeNetns"));
  exports.Set("socketInNetns", Napi::Function::New<SocketInNetns>(env, "socketInNetns"));
}

}  // namespace netplane
