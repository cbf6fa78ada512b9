// SPDX-License-Identifier: Apache-2.0
// BpfProgram: load raw instructions, open, inspect, run once. Layer: native.
#include "program.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <signal.h>

#include <memory>
#include <optional>
#include <vector>

#include "args.h"

namespace netplane {
namespace {

// room for what a program may add in front of or behind the packet
constexpr size_t kMostGrowth = 64 << 10;
constexpr size_t kMostData = 1 << 20;
// more than any context the kernel gives back (struct __sk_buff: 192)
constexpr size_t kMostContext = 4096;
// probes are short
constexpr size_t kLogBytes = 1 << 20;

std::string Hex(const uint8_t* bytes, size_t size) {
  static const char digits[] = "0123456789abcdef";
  std::string text;
  for (size_t i = 0; i < size; i++) {
    text += digits[bytes[i] >> 4];
    text += digits[bytes[i] & 15];
  }
  return text;
}

Napi::Value CopyOut(Napi::Env env, const std::vector<uint8_t>& bytes, size_t size) {
  return Napi::Buffer<uint8_t>::Copy(env, bytes.data(), std::min(size, bytes.size()));
}

std::vector<bpf_insn> ToInstructions(const Napi::Value& value, const char* op) {
  Bytes code = ToBytes(value, op, "instructions");
  if (code.size == 0 || code.size % sizeof(bpf_insn) != 0) {
    ThrowInvalid(value.Env(), op, "instructions must be 8 bytes each");
  }
  std::vector<bpf_insn> insns(code.size / sizeof(bpf_insn));
  memcpy(insns.data(), code.data, code.size);
  return insns;
}

// Types of a program on socket buffers, and of a function of it that takes its context and is verified by itself.
class FunctionTypes {
 public:
  explicit FunctionTypes(uint32_t at) : types_(btf__new_empty()) {
    btf* types = types_.get();
    int number = btf__add_int(types, "int", sizeof(int), BTF_INT_SIGNED);
    int context = btf__add_ptr(types, btf__add_struct(types, "__sk_buff", sizeof(int)));
    btf__add_field(types, "len", number, 0, 0);
    int prototype = btf__add_func_proto(types, number);
    btf__add_func_param(types, "skb", context);
    functions_[0] = {0, static_cast<uint32_t>(btf__add_func(types, "program", BTF_FUNC_STATIC, prototype))};
    functions_[1] = {at, static_cast<uint32_t>(btf__add_func(types, "part", BTF_FUNC_GLOBAL, prototype))};
  }

  // The kernel keeps them for as long as `this` lives, then for as long as the program does.
  int Use(bpf_prog_load_opts* opts) {
    int result = btf__load_into_kernel(types_.get());
    opts->prog_btf_fd = btf__fd(types_.get());
    opts->func_info = functions_;
    opts->func_info_cnt = 2;
    opts->func_info_rec_size = sizeof(bpf_func_info);
    return result;
  }

 private:
  struct Free {
    void operator()(btf* types) const { btf__free(types); }
  };
  std::unique_ptr<btf, Free> types_;
  bpf_func_info functions_[2];
};

// Input and output of one test run. Without data or context none is asked for: some kernels and program types have
// none.
class TestPacket {
 public:
  TestPacket(const Napi::Value& data_value, const Napi::Value& context_value, const char* op) {
    Bytes data = ToBytes(data_value, op, "data");
    Bytes context = context_value.IsUndefined() ? Bytes{} : ToBytes(context_value, op, "context");
    if (data.size > kMostData) ThrowInvalid(data_value.Env(), op, "data is longer than any packet");
    if (context.size > kMostContext) ThrowInvalid(data_value.Env(), op, "context is longer than any context");
    if (data.size > 0) data_.resize(data.size + kMostGrowth);
    if (context.size > 0) context_.resize(kMostContext);
    run.data_in = data.size == 0 ? nullptr : data.data;
    run.data_size_in = static_cast<uint32_t>(data.size);
    run.data_out = data_.empty() ? nullptr : data_.data();
    run.data_size_out = static_cast<uint32_t>(data_.size());
    run.ctx_in = context.size == 0 ? nullptr : context.data;
    run.ctx_size_in = static_cast<uint32_t>(context.size);
    run.ctx_out = context_.empty() ? nullptr : context_.data();
    run.ctx_size_out = static_cast<uint32_t>(context_.size());
  }

  Napi::Value Result(Napi::Env env) const {
    Napi::Object result = Napi::Object::New(env);
    result.Set("retval", run.retval);
    result.Set("dataOut", CopyOut(env, data_, run.data_size_out));
    result.Set("contextOut", CopyOut(env, context_, run.ctx_size_out));
    result.Set("durationNs", run.duration);
    return result;
  }

  bpf_test_run_opts run = Opts<bpf_test_run_opts>();

 private:
  std::vector<uint8_t> data_;
  std::vector<uint8_t> context_;
};

// While it lives, this thread gets no signals: the kernel ends a test run of several packets in its middle for one that
// is waiting.
class SignalsHeld {
 public:
  SignalsHeld() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalsHeld() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsHeld(const SignalsHeld&) = delete;
  SignalsHeld& operator=(const SignalsHeld&) = delete;

 private:
  sigset_t before_;
};

}  // namespace

BpfProgram::BpfProgram(const Napi::CallbackInfo& info) : FdHandle<BpfProgram>(info) { fd_ = Take<Fd>(info); }

Napi::Value BpfProgram::Load(const Napi::CallbackInfo& info) {
  const char* op = "bpf_prog_load";
  Napi::Object options = ToObject(info[0], op, "options");
  auto type = static_cast<bpf_prog_type>(ToInt(options.Get("type"), op, "type"));
  Napi::Value license = options.Get("license");
  std::string license_text = license.IsUndefined() ? "GPL" : ToText(license, op, "license");
  auto opts = Opts<bpf_prog_load_opts>();
  opts.expected_attach_type =
      static_cast<bpf_attach_type>(ToU32Or(options.Get("expectedAttachType"), 0, op, "expectedAttachType"));
  std::vector<bpf_insn> insns = ToInstructions(options.Get("instructions"), op);
  // libbpf asks for the log only after a refusal, and then loads once more
  std::unique_ptr<char[]> log(new char[kLogBytes]);
  log[0] = '\0';
  opts.log_buf = log.get();
  opts.log_size = kLogBytes;
  std::optional<FunctionTypes> functions;
  Napi::Value part = options.Get("globalAt");
  if (!part.IsUndefined())
    Check(info.Env(), functions.emplace(ToU32(part, op, "globalAt")).Use(&opts), "btf__load_into_kernel");
  int fd = bpf_prog_load(type, nullptr, license_text.c_str(), insns.data(), insns.size(), &opts);
  if (fd < 0) throw ToError(info.Env(), Failure{-fd, op, "", log.get()});
  return FromFd(info.Env(), Fd(fd));
}

Napi::Value BpfProgram::OpenPinned(const Napi::CallbackInfo& info) {
  return FromFd(info.Env(), OpenPin(info, PinKind::kProgram, "program"));
}

Napi::Value BpfProgram::OpenId(const Napi::CallbackInfo& info) {
  const char* op = "bpf_prog_get_fd_by_id";
  int fd = bpf_prog_get_fd_by_id(ToU32(info[0], op, "id"));
  return FromFd(info.Env(), OwnFd(info.Env(), fd, op));
}

Napi::Value BpfProgram::NextId(const Napi::CallbackInfo& info) {
  const char* op = "bpf_prog_get_next_id";
  uint32_t next = 0;
  int result = bpf_prog_get_next_id(ToU32(info[0], op, "id"), &next);
  return IdOrNone(info.Env(), result, next, op);
}

Napi::Value BpfProgram::Info(const Napi::CallbackInfo& info) {
  const char* op = "bpf_obj_get_info_by_fd";
  bpf_prog_info program = {};
  uint32_t size = sizeof(program);
  Check(info.Env(), bpf_obj_get_info_by_fd(fd(op), &program, &size), op);
  Napi::Object result = Napi::Object::New(info.Env());
  result.Set("id", program.id);
  result.Set("name", std::string(program.name, strnlen(program.name, sizeof(program.name))));
  result.Set("type", program.type);
  result.Set("tag", Hex(program.tag, sizeof(program.tag)));
  result.Set("xlatedBytes", program.xlated_prog_len);
  result.Set("jitedBytes", program.jited_prog_len);
  result.Set("verifiedInstructions", program.verified_insns);
  return result;
}

Napi::Value BpfProgram::TestRun(const Napi::CallbackInfo& info) {
  const char* op = "bpf_prog_test_run_opts";
  int program = fd(op);
  Napi::Object options = ToObject(info[0], op, "options");
  Napi::Value data = options.Get("data");
  Napi::Value context = options.Get("context");
  Napi::Value repeat = options.Get("repeat");
  TestPacket packet(data, context, op);
  packet.run.repeat = repeat.IsUndefined() ? 1 : ToInt(repeat, op, "repeat");
  SignalsHeld held;
  Check(info.Env(), bpf_prog_test_run_opts(program, &packet.run), op);
  return packet.Result(info.Env());
}

void BpfProgram::Pin(const Napi::CallbackInfo& info) { PinFd(info, fd("bpf_obj_pin")); }

void BpfProgram::Define(Napi::Env env, Napi::Object exports) {
  Export(env, exports,
         DefineClass(env, kName,
                     {
                         StaticMethod<&BpfProgram::Load>("load"),
                         StaticMethod<&BpfProgram::OpenPinned>("openPin"),
                         StaticMethod<&BpfProgram::OpenId>("openId"),
                         StaticMethod<&BpfProgram::NextId>("nextId"),
                         InstanceMethod<&BpfProgram::Info>("info"),
                         InstanceMethod<&BpfProgram::TestRun>("testRun"),
                         InstanceMethod<&BpfProgram::Pin>("pin"),
                         InstanceMethod<&BpfProgram::Close>("close"),
                     }));
}

}  // namespace netplane
