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
  sock_fprog program = {sizeof(code) / sizeof(code[0]), code};
  return setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program)) == 0;
}

// Without a protocol it hears nothing until the filter is there.
Napi::Value OpenUdpTap(const Napi::CallbackInfo& info) {
  const char* op = "socket";
  int port = ToInt(info[0], op, "port");
  if (port < 1 || port > 0xffff) ThrowInvalid(info.Env(), op, "port must be 1..65535");
  Fd fd(socket(AF_PACKET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.open()) Throw(info.Env(), errno, op);
  if (!Filter(fd.get(), static_cast<uint16_t>(port))) Throw(info.Env(), errno, "setsockopt", "SO_ATTACH_FILTER");
  int on = 1;
  setsockopt(fd.get(), SOL_PACKET, kIgnoreOutgoing, &on, sizeof(on));
  setsockopt(fd.get(), SOL_SOCKET, SO_RCVBUF, &kBufferBytes, sizeof(kBufferBytes));
  sockaddr_ll all = {};
  all.sll_family = AF_PACKET;
  all.sll_protocol = htons(ETH_P_ALL);
  if (bind(fd.get(), reinterpret_cast<sockaddr*>(&all), sizeof(all)) != 0) Throw(info.Env(), errno, "bind");
  return Napi::Number::New(info.Env(), fd.Release());
}

// Of IPv4 without a checksum, as tunnels send; IPv6's is the kernel's to make.
Napi::Value SendRawUdp(const Napi::CallbackInfo& info) {
  const char* op = "sendto";
  std::string address = ToText(info[0], op, "address");
  int source = ToInt(info[1], op, "source port"), port = ToInt(info[2], op, "port");
  Bytes payload = ToBytes(info[3], op, "payload");
  if (source > 0xffff || port < 1 || port > 0xffff) ThrowInvalid(info.Env(), op, "ports are at most 65535");
  const bool v6 = address.find(':') != std::string::npos;
  sockaddr_in to4 = {};
  sockaddr_in6 to6 = {};
  to4.sin_family = AF_INET;
  to6.sin6_family = AF_INET6;
  void* into = v6 ? static_cast<void*>(&to6.sin6_addr) : static_cast<void*>(&to4.sin_addr);
  if (inet_pton(v6 ? AF_INET6 : AF_INET, address.c_str(), into) != 1) ThrowInvalid(info.Env(), op, "no address");
  std::vector<uint8_t> packet(8 + payload.size);
  if (packet.size() > 0xffff) ThrowInvalid(info.Env(), op, "payload is too long");
  const uint16_t head[] = {htons(static_cast<uint16_t>(source)), htons(static_cast<uint16_t>(port)),
                           htons(static_cast<uint16_t>(packet.size())), 0};
  memcpy(packet.data(), head, sizeof(head));
  if (payload.size > 0) memcpy(packet.data() + sizeof(head), payload.data, payload.size);
  Fd fd(socket(v6 ? AF_INET6 : AF_INET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, IPPROTO_UDP));
  if (!fd.open()) Throw(info.Env(), errno, "socket");
  int checksum_at = 6;
  if (v6 && setsockopt(fd.get(), IPPROTO_IPV6, IPV6_CHECKSUM, &checksum_at, sizeof(checksum_at)) != 0)
    Throw(info.Env(), errno, "setsockopt", "IPV6_CHECKSUM");
  const sockaddr* to = v6 ? reinterpret_cast<sockaddr*>(&to6) : reinterpret_cast<sockaddr*>(&to4);
  ssize_t sent = sendto(fd.get(), packet.data(), packet.size(), 0, to, v6 ? sizeof(to6) : sizeof(to4));
  if (sent < 0) Throw(info.Env(), errno, op);
  return info.Env().Undefined();
}

}  // namespace

void DefinePacket(Napi::Env env, Napi::Object exports) {
  exports.Set("openUdpTap", Napi::Function::New<OpenUdpTap>(env, "openUdpTap"));
  exports.Set("sendRawUdp", Napi::Function::New<SendRawUdp>(env, "sendRawUdp"));
}

}  // namespace netplane
