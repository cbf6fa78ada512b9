// SPDX-License-Identifier: Apache-2.0
// UDP beside sockets: sees packets of a port as they come in, before any firewall or socket has them, and sends some.
// Layer: native.
#include <arpa/inet.h>
#include <linux/filter.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <vector>

#include "args.h"
#include "errors.h"
#include "exports.h"
#include "handle.h"

namespace netplane {
namespace {

// newer than the headers we build with; without it (before 4.20) packets that leave are seen as well
constexpr int kIgnoreOutgoing = 23;
constexpr int kBufferBytes = 1 << 20;

template <size_t N>
bool SetFilter(int fd, sock_filter (&code)[N]) {
  sock_fprog program = {N, code};
  return setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program)) == 0;
}

sock_filter Load(uint16_t size, uint32_t at) { return BPF_STMT(static_cast<uint16_t>(BPF_LD | size | BPF_ABS), at); }
sock_filter Equal(uint32_t value, uint8_t yes, uint8_t no) {
  return BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, yes, no);
}

// UDP to the port, from the network header on: of IPv4 first fragments with options or without, of IPv6 without
// extension headers. The last two instructions are no and yes.
bool Filter(int fd, uint16_t port) {
  sock_filter code[] = {
      Load(BPF_B, 0),
      BPF_STMT(BPF_ALU | BPF_RSH | BPF_K, 4),
      Equal(4, 0, 7),
      Load(BPF_B, 9),
      Equal(IPPROTO_UDP, 0, 10),
      Load(BPF_H, 6),
      BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, 0x1fff, 8, 0),
      BPF_STMT(BPF_LDX | BPF_B | BPF_MSH, 0),
      BPF_STMT(BPF_LD | BPF_H | BPF_IND, 2),
      Equal(port, 6, 5),
      Equal(6, 0, 4),
      Load(BPF_B, 6),
      Equal(IPPROTO_UDP, 0, 2),
      Load(BPF_H, 42),
      Equal(port, 1, 0),
      BPF_STMT(BPF_RET | BPF_K, 0),
      BPF_STMT(BPF_RET | BPF_K, 0xffff),
  };
  return SetFilter(fd, code);
}

uint16_t ToPort(const Napi::CallbackInfo& info) {
  int port = ToInt(info[0], "socket", "port");
  if (port < 1 || port > 0xffff) ThrowInvalid(info.Env(), "socket", "port must be 1..65535");
  return static_cast<uint16_t>(port);
}

// Without a protocol it hears nothing until BindTap gives it one.
Fd OpenTap(Napi::Env env) {
  Fd fd(socket(AF_PACKET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.open()) Throw(env, errno, "socket");
  return fd;
}

Napi::Value BindTap(Napi::Env env, Fd& fd, uint16_t protocol) {
  sockaddr_ll all = {};
  all.sll_family = AF_PACKET;
  all.sll_protocol = htons(protocol);
  if (bind(fd.get(), reinterpret_cast<sockaddr*>(&all), sizeof(all)) != 0) Throw(env, errno, "bind");
  return Napi::Number::New(env, fd.Release());
}

Napi::Value OpenUdpTap(const Napi::CallbackInfo& info) {
  const uint16_t port = ToPort(info);
  Fd fd = OpenTap(info.Env());
  if (!Filter(fd.get(), port)) Throw(info.Env(), errno, "setsockopt", "SO_ATTACH_FILTER");
  int on = 1;
  setsockopt(fd.get(), SOL_PACKET, kIgnoreOutgoing, &on, sizeof(on));
  setsockopt(fd.get(), SOL_SOCKET, SO_RCVBUF, &kBufferBytes, sizeof(kBufferBytes));
  return BindTap(info.Env(), fd, ETH_P_ALL);
}

// The VXLAN flags of what agents ask each other with, as their probe-packet.ts has them, and how much of it is read.
constexpr uint32_t kProbeFlags = 0x01000000;
constexpr uint32_t kProbeBytes = 256;

// UDP to the port with these flags, from the network header on, of one family. The last two instructions are no and
// yes.
bool ProbeFilter(int fd, bool v6, uint16_t port) {
  sock_filter v4_code[] = {
      Load(BPF_B, 9),
      Equal(IPPROTO_UDP, 0, 7),
      Load(BPF_H, 6),
      BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, 0x3fff, 5, 0),
      BPF_STMT(BPF_LDX | BPF_B | BPF_MSH, 0),
      BPF_STMT(BPF_LD | BPF_H | BPF_IND, 2),
      Equal(port, 0, 2),
      BPF_STMT(BPF_LD | BPF_W | BPF_IND, 8),
      Equal(kProbeFlags, 1, 0),
      BPF_STMT(BPF_RET | BPF_K, 0),
      BPF_STMT(BPF_RET | BPF_K, kProbeBytes),
  };
  sock_filter v6_code[] = {
      Load(BPF_B, 6),
      Equal(IPPROTO_UDP, 0, 4),
      Load(BPF_H, 42),
      Equal(port, 0, 2),
      Load(BPF_W, 48),
      Equal(kProbeFlags, 1, 0),
      BPF_STMT(BPF_RET | BPF_K, 0),
      BPF_STMT(BPF_RET | BPF_K, kProbeBytes),
  };
  return v6 ? SetFilter(fd, v6_code) : SetFilter(fd, v4_code);
}

bool IsV6(const Napi::CallbackInfo& info, const char* op, const std::string& family) {
  if (family != "IPv4" && family != "IPv6") ThrowInvalid(info.Env(), op, "family must be IPv4 or IPv6");
  return family == "IPv6";
}

// A tap of one protocol hears the packets that programs of tc leave to the kernel. Other packets do not pay for it.
Napi::Value OpenProbeTap(const Napi::CallbackInfo& info) {
  const uint16_t port = ToPort(info);
  const bool v6 = IsV6(info, "socket", ToText(info[1], "socket", "family"));
  Fd fd = OpenTap(info.Env());
  if (!ProbeFilter(fd.get(), v6, port)) Throw(info.Env(), errno, "setsockopt", "SO_ATTACH_FILTER");
  return BindTap(info.Env(), fd, v6 ? ETH_P_IPV6 : ETH_P_IP);
}

struct Address {
  sockaddr_storage bytes = {};
  socklen_t length = 0;
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&bytes); }
};

Address ToAddress(Napi::Env env, const char* op, const std::string& text) {
  Address to;
  const bool v6 = text.find(':') != std::string::npos;
  to.bytes.ss_family = v6 ? AF_INET6 : AF_INET;
  to.length = v6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
  void* into = v6 ? static_cast<void*>(&reinterpret_cast<sockaddr_in6*>(&to.bytes)->sin6_addr)
                  : static_cast<void*>(&reinterpret_cast<sockaddr_in*>(&to.bytes)->sin_addr);
  if (inet_pton(to.bytes.ss_family, text.c_str(), into) != 1) ThrowInvalid(env, op, "no address");
  return to;
}

// The socket only sends: the kernel would give it every UDP packet of the peer.
bool HearNothing(int fd) {
  sock_filter code[] = {BPF_STMT(BPF_RET | BPF_K, 0)};
  return SetFilter(fd, code);
}

// What is written has its UDP header. While it is open the kernel learns from routers how narrow the path is.
Napi::Value OpenRawUdp(const Napi::CallbackInfo& info) {
  const char* op = "connect";
  Address source = ToAddress(info.Env(), op, ToText(info[0], op, "source"));
  Address to = ToAddress(info.Env(), op, ToText(info[1], op, "address"));
  const bool v6 = to.bytes.ss_family == AF_INET6;
  Fd fd(socket(to.bytes.ss_family, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, IPPROTO_UDP));
  if (!fd.open()) Throw(info.Env(), errno, "socket");
  if (!HearNothing(fd.get())) Throw(info.Env(), errno, "setsockopt", "SO_ATTACH_FILTER");
  const int level = v6 ? IPPROTO_IPV6 : IPPROTO_IP;
  const int whole = IP_PMTUDISC_DO;  // IPV6_PMTUDISC_DO is the same number
  static_assert(IP_PMTUDISC_DO == IPV6_PMTUDISC_DO);
  if (setsockopt(fd.get(), level, v6 ? IPV6_MTU_DISCOVER : IP_MTU_DISCOVER, &whole, sizeof(whole)) != 0)
    Throw(info.Env(), errno, "setsockopt", "MTU_DISCOVER");
  if (bind(fd.get(), source.get(), source.length) != 0) Throw(info.Env(), errno, "bind");
  if (connect(fd.get(), to.get(), to.length) != 0) Throw(info.Env(), errno, op);
  int mtu = 0;
  socklen_t size = sizeof(mtu);
  if (getsockopt(fd.get(), level, v6 ? IPV6_MTU : IP_MTU, &mtu, &size) != 0) Throw(info.Env(), errno, "getsockopt");
  Napi::Object made = Napi::Object::New(info.Env());
  made.Set("fd", Napi::Number::New(info.Env(), fd.Release()));
  made.Set("mtu", Napi::Number::New(info.Env(), mtu));
  return made;
}

// Of IPv4 without a checksum, as tunnels send; IPv6's is the kernel's to make.
Napi::Value SendRawUdp(const Napi::CallbackInfo& info) {
  const char* op = "sendto";
  std::string address = ToText(info[0], op, "address");
  int source = ToInt(info[1], op, "source port"), port = ToInt(info[2], op, "port");
  Bytes payload = ToBytes(info[3], op, "payload");
  if (source > 0xffff || port < 1 || port > 0xffff) ThrowInvalid(info.Env(), op, "ports are at most 65535");
  Address to = ToAddress(info.Env(), op, address);
  std::vector<uint8_t> packet(8 + payload.size);
  if (packet.size() > 0xffff) ThrowInvalid(info.Env(), op, "payload is too long");
  const uint16_t head[] = {htons(static_cast<uint16_t>(source)), htons(static_cast<uint16_t>(port)),
                           htons(static_cast<uint16_t>(packet.size())), 0};
  memcpy(packet.data(), head, sizeof(head));
  if (payload.size > 0) memcpy(packet.data() + sizeof(head), payload.data, payload.size);
  const bool v6 = to.bytes.ss_family == AF_INET6;
  Fd fd(socket(to.bytes.ss_family, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, IPPROTO_UDP));
  if (!fd.open()) Throw(info.Env(), errno, "socket");
  int checksum_at = 6;
  if (v6 && setsockopt(fd.get(), IPPROTO_IPV6, IPV6_CHECKSUM, &checksum_at, sizeof(checksum_at)) != 0)
    Throw(info.Env(), errno, "setsockopt", "IPV6_CHECKSUM");
  ssize_t sent = sendto(fd.get(), packet.data(), packet.size(), 0, to.get(), to.length);
  if (sent < 0) Throw(info.Env(), errno, op);
  return info.Env().Undefined();
}

}  // namespace

void DefinePacket(Napi::Env env, Napi::Object exports) {
  exports.Set("openUdpTap", Napi::Function::New<OpenUdpTap>(env, "openUdpTap"));
  exports.Set("openProbeTap", Napi::Function::New<OpenProbeTap>(env, "openProbeTap"));
  exports.Set("openRawUdp", Napi::Function::New<OpenRawUdp>(env, "openRawUdp"));
  exports.Set("sendRawUdp", Napi::Function::New<SendRawUdp>(env, "sendRawUdp"));
}

}  // namespace netplane
