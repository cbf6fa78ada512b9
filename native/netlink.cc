// SPDX-License-Identifier: Apache-2.0
// NetlinkSocket: open, send, receive, watch. Layer: native.
#include "netlink.h"

#include <ctime>
#include <linux/netlink.h>
#include <poll.h>
#include <sys/socket.h>

#include "args.h"
#include "netns.h"

namespace netplane {
namespace {

// A datagram larger than this is read whole all the same; and the kernel makes dumps in larger pieces when it sees
// room.
constexpr size_t kScratchBytes = 64 << 10;

sockaddr_nl Address() {
  sockaddr_nl address = {};
  address.nl_family = AF_NETLINK;
  return address;
}

sockaddr* Generic(sockaddr_nl* address) { return reinterpret_cast<sockaddr*>(address); }

int SetOption(int fd, int level, int option, int value) { return setsockopt(fd, level, option, &value, sizeof(value)); }

// beyond the system's limit where we may
void SetReceiveBuffer(Napi::Env env, int fd, int bytes) {
  if (SetOption(fd, SOL_SOCKET, SO_RCVBUFFORCE, bytes) == 0) return;
  if (SetOption(fd, SOL_SOCKET, SO_RCVBUF, bytes) != 0) Throw(env, errno, "setsockopt", "SO_RCVBUF");
}

uint32_t Bind(Napi::Env env, int fd) {
  sockaddr_nl address = Address();
  socklen_t size = sizeof(address);
  if (bind(fd, Generic(&address), size) != 0) Throw(env, errno, "bind");
  if (getsockname(fd, Generic(&address), &size) != 0) Throw(env, errno, "getsockname");
  return address.nl_pid;
}

void Join(Napi::Env env, int fd, const Napi::Value& groups) {
  const char* op = "setsockopt";
  if (groups.IsUndefined()) return;
  if (!groups.IsArray()) ThrowInvalid(env, op, "groups must be an array");
  auto list = groups.As<Napi::Array>();
  for (uint32_t i = 0; i < list.Length(); i++) {
    int group = ToInt(list.Get(i), op, "group");
    if (SetOption(fd, SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, group) != 0) Throw(env, errno, op, "NETLINK_ADD_MEMBERSHIP");
  }
}

// A socket stays in the namespace in which it was made.
Fd Socket(Napi::Env env, int protocol, const Napi::Value& netns) {
  const char* op = "socket";
  auto make = [protocol] { return socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, protocol); };
  std::string path = netns.IsUndefined() ? "" : ToText(netns, op, "netns");
  Fd fd(netns.IsUndefined() ? make() : InNetns(path, make));
  if (!fd.open()) Throw(env, errno, op, path);
  return fd;
}

double NowMs() {
  timespec now = {};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) * 1e3 + static_cast<double>(now.tv_nsec) / 1e6;
}

// Whether something is there to receive, be it an error. A signal does not lengthen the wait.
bool WaitReadable(int fd, int ms) {
  pollfd wanted{fd, POLLIN, 0};
  double end = NowMs() + ms;
  for (int left = ms;; left = static_cast<int>(std::max(0.0, end - NowMs()))) {
    int ready = poll(&wanted, 1, left);
    if (ready >= 0 || errno != EINTR) return ready > 0;
  }
}

}  // namespace

NetlinkSocket::NetlinkSocket(const Napi::CallbackInfo& info) : FdHandle<NetlinkSocket>(info) {
  OpenSocket init = Take<OpenSocket>(info);
  fd_ = std::move(init.fd);
  port_ = init.port;
}

Napi::Value NetlinkSocket::Open(const Napi::CallbackInfo& info) {
  const char* op = "socket";
  Napi::Env env = info.Env();
  Napi::Object options = ToObject(info[0], op, "options");
  int protocol = ToInt(options.Get("protocol"), op, "protocol");
  Napi::Value buffer = options.Get("receiveBufferBytes");
  Fd fd = Socket(env, protocol, options.Get("netns"));
  if (!buffer.IsUndefined()) SetReceiveBuffer(env, fd.get(), ToInt(buffer, op, "receiveBufferBytes"));
  // 4.12; only makes errors speak
  SetOption(fd.get(), SOL_NETLINK, NETLINK_EXT_ACK, 1);
  uint32_t port = Bind(env, fd.get());
  Join(env, fd.get(), options.Get("groups"));
  return Make(env, OpenSocket{std::move(fd), port});
}

Napi::Value NetlinkSocket::Port(const Napi::CallbackInfo& info) {
  return Napi::Number::New(info.Env(), From(info.This(), "port").port_);
}

void NetlinkSocket::Send(const Napi::CallbackInfo& info) {
  const char* op = "sendto";
  int socket = fd(op);
  Bytes bytes = ToBytes(info[0], op, "bytes");
  sockaddr_nl kernel = Address();
  ssize_t sent = sendto(socket, bytes.data, bytes.size, 0, Generic(&kernel), sizeof(kernel));
  if (sent < 0) Throw(info.Env(), errno, op);
}

// Looks first, so that the buffer has the datagram's length. Other processes may send to our port: those are dropped.
Napi::Value NetlinkSocket::ReceiveNow(const char* op) {
  int socket = fd(op);
  scratch_.resize(kScratchBytes);
  for (;;) {
    sockaddr_nl sender = Address();
    socklen_t sender_size = sizeof(sender);
    ssize_t size = recvfrom(socket, scratch_.data(), scratch_.size(), MSG_PEEK | MSG_TRUNC | MSG_DONTWAIT,
                            Generic(&sender), &sender_size);
    if (size < 0 && (errno == EAGAIN || errno == EINTR)) return Env().Undefined();
    if (size < 0) Throw(Env(), errno, op);
    auto datagram = Napi::Buffer<uint8_t>::New(Env(), static_cast<size_t>(size));
    ssize_t taken = recv(socket, datagram.Data(), datagram.Length(), MSG_DONTWAIT);
    if (taken < 0) Throw(Env(), errno, op);
    if (sender.nl_pid == 0) return datagram;
  }
}

Napi::Value NetlinkSocket::Receive(const Napi::CallbackInfo&) { return ReceiveNow("recv"); }

Napi::Value NetlinkSocket::ReceiveWait(const Napi::CallbackInfo& info) {
  const char* op = "recv";
  int socket = fd(op);
  int ms = ToInt(info[0], op, "ms");
  if (!WaitReadable(socket, ms)) return info.Env().Undefined();
  return ReceiveNow(op);
}

void NetlinkSocket::OnReadable(const Napi::CallbackInfo& info) {
  const char* op = "uv_poll_start";
  fd(op);
  if (info[0].IsUndefined()) Unwatch();
  else Watch(ToFunction(info[0], op, "callback"));
}

// While watched, the loop holds this object.
void NetlinkSocket::Watch(Napi::Function callback) {
  if (poller_ == nullptr) {
    poller_ = Poller::Open(Env(), fd_.get(), [this] { Ready(); });
    context_ = std::make_unique<Napi::AsyncContext>(Env(), "netplane.NetlinkSocket");
  }
  if (callback_.IsEmpty()) Ref();
  callback_ = Napi::Persistent(callback);
  poller_->Start();
}

void NetlinkSocket::Unwatch() {
  if (callback_.IsEmpty()) return;
  poller_->Stop();
  callback_.Reset();
  Unref();
}

void NetlinkSocket::Ready() {
  Napi::HandleScope scope(Env());
  CallFromLoop(Env(), callback_, {}, *context_);
}

void NetlinkSocket::Release() {
  if (poller_ != nullptr) poller_->Close();
  poller_.reset();
  fd_.Reset();
}

void NetlinkSocket::Close(const Napi::CallbackInfo&) {
  Unwatch();
  Release();
}

void NetlinkSocket::Define(Napi::Env env, Napi::Object exports) {
  Export(env, exports,
         DefineClass(env, kName,
                     {
                         StaticMethod<&NetlinkSocket::Open>("open"),
                         Property<&NetlinkSocket::Port>("port"),
                         InstanceMethod<&NetlinkSocket::Send>("send"),
                         InstanceMethod<&NetlinkSocket::Receive>("receive"),
                         InstanceMethod<&NetlinkSocket::ReceiveWait>("receiveWait"),
                         InstanceMethod<&NetlinkSocket::OnReadable>("onReadable"),
                         InstanceMethod<&NetlinkSocket::Close>("close"),
                     }));
}

}  // namespace netplane
