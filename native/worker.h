// SPDX-License-Identifier: Apache-2.0
// Runs one blocking call on a worker thread and settles a promise with its result. Layer: native.
#pragma once

#include <functional>
#include <memory>
#include <napi.h>
#include <optional>

#include "errors.h"

namespace netplane {

// `Work` owns everything it touches and holds no JS value. It has: std::optional<Failure> Run(), on the worker,
// and Napi::Value Finish(Napi::Env), on the JS thread after success. `settled` runs on the JS thread in any case.
template <class Work>
class Worker : public Napi::AsyncWorker {
 public:
  static Napi::Promise Start(Napi::Env env, const char* op, std::unique_ptr<Work> work,
                             std::function<void()> settled = nullptr) {
    auto* worker = new Worker(env, op, std::move(work), std::move(settled));
    Napi::Promise promise = worker->deferred_.Promise();
    worker->Queue();  // deletes itself when done
    return promise;
  }

 protected:
  void Execute() override {
    failure_ = work_->Run();
    if (failure_.has_value()) SetError(failure_->op);
  }

  void OnOK() override {
    if (settled_) settled_();
    try {
      deferred_.Resolve(work_->Finish(Env()));
    } catch (const Napi::Error& error) {
      deferred_.Reject(error.Value());
    }
  }

  // Also reached without a Failure: when Run threw, which is only ever for want of memory.
  void OnError(const Napi::Error& error) override {
    if (settled_) settled_();
    Failure failure = failure_.value_or(Failure{ENOMEM, op_, error.Message()});
    deferred_.Reject(ToError(Env(), failure).Value());
  }

 private:
  Worker(Napi::Env env, const char* op, std::unique_ptr<Work> work, std::function<void()> settled)
      : Napi::AsyncWorker(env, op),
        deferred_(Napi::Promise::Deferred::New(env)),
        op_(op),
        work_(std::move(work)),
        settled_(std::move(settled)) {}

  Napi::Promise::Deferred deferred_;
  const char* op_;
  std::unique_ptr<Work> work_;
  std::function<void()> settled_;
  std::optional<Failure> failure_;
};

}  // namespace netplane
