// SPDX-License-Identifier: Apache-2.0
// Watches one fd in the event loop. Layer: native, used by events.cc and netlink.cc.
#pragma once

#include <functional>
#include <memory>
#include <napi.h>
#include <uv.h>

namespace netplane {

// A started poller keeps the loop alive. Its uv handles outlive Close() by a turn of the loop, so it owns itself until
// they are gone; an environment that ends waits for that. The opener calls Close() before it closes the fd.
class Poller : public std::enable_shared_from_this<Poller> {
 public:
  // `ready` runs on the JS thread, outside any JavaScript call
  static std::shared_ptr<Poller> Open(Napi::Env env, int fd, std::function<void()> ready);

  void Start();
  void Stop();
  // calls `ready` so many turns of the loop from now, whether or not the fd says so
  void Again(int turns);
  void Close();
  bool closed() const { return closed_; }

 private:
  explicit Poller(std::function<void()> ready) : ready_(std::move(ready)) {}
  void Ready();
  static void OnPoll(uv_poll_t* poll, int status, int events);
  static void OnIdle(uv_idle_t* idle);
  static void OnClosed(uv_handle_t* handle);
  static void OnEnvironmentEnd(napi_async_cleanup_hook_handle, void* self);

  std::function<void()> ready_;
  uv_poll_t poll_ = {};
  uv_idle_t idle_ = {};
  int open_handles_ = 2;
  int turns_ = 0;
  bool started_ = false;
  bool closed_ = false;
  napi_async_cleanup_hook_handle cleanup_ = nullptr;
  std::shared_ptr<Poller> self_;
};

// Calls a JavaScript callback from the event loop; what it throws becomes an uncaught exception, as for any callback.
void CallFromLoop(Napi::Env env, const Napi::FunctionReference& callback, const std::vector<napi_value>& args,
                  napi_async_context context);

}  // namespace netplane
