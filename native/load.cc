// SPDX-License-Identifier: Apache-2.0
// bpf_object__load with the verifier's log kept whole. Layer: native.
#include "load.h"

#include <bpf/bpf.h>
#include <memory>

namespace netplane {
namespace {

// One buffer for all programs: loading stops at the first that fails. libbpf asks for a log only when a program was
// refused, and then loads it once more with this buffer, whose size is the largest that kernels before 5.2 accept.
// From 6.4 on a longer log keeps its end; before, its beginning.
class VerifierLog {
 public:
  explicit VerifierLog(bpf_object* object) : object_(object), text_(new char[BPF_LOG_BUF_SIZE]) {
    text_[0] = '\0';
    Use(text_.get(), BPF_LOG_BUF_SIZE);
  }
  ~VerifierLog() { Use(nullptr, 0); }
  const char* Text() const { return text_.get(); }

 private:
  void Use(char* text, size_t size) {
    bpf_program* program;
    bpf_object__for_each_program(program, object_) bpf_program__set_log_buf(program, text, size);
  }

  bpf_object* object_;
  std::unique_ptr<char[]> text_;  // not initialised, so only what the kernel writes becomes memory
};

// BPF_LOG_STATS: some lines, and nothing else, also when the program is refused. The newest kernels write one for each
// function, and refuse the program where there is no room.
constexpr uint32_t kStatistics = 4;
constexpr size_t kStatisticsBytes = 1 << 16;

}  // namespace

std::vector<LoadWork::Told> LoadWork::AskStatistics() {
  std::vector<Told> told;
  if (!statistics_) return told;
  bpf_program* program;
  bpf_object__for_each_program(program, object_) {
    told.push_back({program, std::unique_ptr<char[]>(new char[kStatisticsBytes]())});
    bpf_program__set_log_level(program, kStatistics);
    bpf_program__set_log_buf(program, told.back().text.get(), kStatisticsBytes);
  }
  return told;
}

std::optional<Failure> LoadWork::Run() {
  LibbpfLog messages;
  VerifierLog log(object_);
  std::vector<Told> told = AskStatistics();
  StubScope scope(stubs_);
  int result = bpf_object__load(object_);
  for (const Told& one : told) told_.emplace_back(bpf_program__name(one.program), one.text.get());
  if (result == 0) return std::nullopt;
  return Failure{-result, "bpf_object__load", messages.Text(), log.Text()};
}

Napi::Value LoadWork::Finish(Napi::Env env) {
  if (!statistics_) return env.Undefined();
  Napi::Object result = Napi::Object::New(env);
  for (const auto& [name, text] : told_) result.Set(name, text);
  return result;
}

}  // namespace netplane
