// SPDX-License-Identifier: Apache-2.0
// Runs one blocking call on a worker thread and settles a promise with its result. Layer: native.
#pragma once

#include <cerrno>
#include <functional>
#include <memory>
#include <napi.h>
#include <new>
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
    try {
      failure_ = work_->Run();
    } catch (const std::bad_alloc&) {
      failure_ = Failure{ENOMEM, op_};
    }
  }

  // Instead of OnOK and OnError: in an environment that ends every call fails, and no code is left to handle that.
  void OnWorkComplete(Napi::Env env, napi_status status) override {
    try {
      Napi::HandleScope scope(env);
      if (settled_) settled_();
      if (status == napi_ok) Settle(env);
    } catch (const Napi::Error&) {
    }
    Destroy();
  }

 private:
  Worker(Napi::Env env, const char* op, std::unique_ptr<Work> work, std::function<void()> settled)
      : Napi::AsyncWorker(env, op),
        deferred_(Napi::Promise::Deferred::New(env)),
        op_(op),
        work_(std::move(work)),
        settled_(std::move(settled)) {}

  void Settle(Napi::Env env) {
    if (failure_.has_value()) {
      deferred_.Reject(ToError(env, *failure_).Value());
      return;
    }
    Napi::Value result;
    try {
      result = work_->Finish(env);
    } catch (const Napi::Error& error) {
      deferred_.Reject(error.Value());
      return;
    }
    deferred_.Resolve(result);
  }

  Napi::Promise::Deferred deferred_;
  const char* op_;
  std::unique_ptr<Work> work_;
  std::function<void()> settled_;
  std::optional<Failure> failure_;
};

}  // namespace netplane
