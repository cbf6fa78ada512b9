// SPDX-License-Identifier: Apache-2.0
// uv_poll with a life. Layer: native.
#include "poller.h"

#include "errors.h"

namespace netplane {

std::shared_ptr<Poller> Poller::Open(Napi::Env env, int fd, std::function<void()> ready) {
  uv_loop_t* loop = nullptr;
  if (napi_get_uv_event_loop(env, &loop) != napi_ok) Throw(env, EINVAL, "napi_get_uv_event_loop");
  std::shared_ptr<Poller> poller(new Poller(std::move(ready)));
  Check(env, uv_poll_init(loop, &poller->poll_, fd), "uv_poll_init");
  uv_idle_init(loop, &poller->idle_);
  poller->poll_.data = poller.get();
  poller->idle_.data = poller.get();
  poller->self_ = poller;
  napi_add_async_cleanup_hook(env, OnEnvironmentEnd, poller.get(), &poller->cleanup_);
  return poller;
}

void Poller::Start() {
  if (closed_) return;
  started_ = true;
  uv_poll_start(&poll_, UV_READABLE, OnPoll);
}

void Poller::Stop() {
  if (closed_) return;
  started_ = false;
  uv_poll_stop(&poll_);
  uv_idle_stop(&idle_);
}

void Poller::Again(int turns) {
  if (closed_) return;
  turns_ = turns;
  uv_idle_start(&idle_, OnIdle);
}

void Poller::Close() {
  if (closed_) return;
  Stop();
  closed_ = true;
  uv_close(reinterpret_cast<uv_handle_t*>(&poll_), OnClosed);
  uv_close(reinterpret_cast<uv_handle_t*>(&idle_), OnClosed);
}

// In a worker thread that must end every call fails; no code is left to handle that.
void Poller::Ready() {
  try {
    ready_();
  } catch (const Napi::Error&) {
  }
}

// An error pending on a socket (ENOBUFS on netlink) makes libuv stop the handle and report EBADF; the callback's read
// takes the error off, so go on watching.
void Poller::OnPoll(uv_poll_t* poll, int status, int) {
  auto self = static_cast<Poller*>(poll->data)->shared_from_this();
  self->Ready();
  if (status < 0 && self->started_ && !self->closed_) self->Start();
}

void Poller::OnIdle(uv_idle_t* idle) {
  auto self = static_cast<Poller*>(idle->data)->shared_from_this();
  if (--self->turns_ > 0) return;
  uv_idle_stop(idle);
  self->Ready();
}

void Poller::OnClosed(uv_handle_t* handle) {
  auto* self = static_cast<Poller*>(handle->data);
  if (--self->open_handles_ > 0) return;
  napi_remove_async_cleanup_hook(self->cleanup_);
  self->self_.reset();
}

void Poller::OnEnvironmentEnd(napi_async_cleanup_hook_handle, void* self) { static_cast<Poller*>(self)->Close(); }

void CallFromLoop(Napi::Env env, const Napi::FunctionReference& callback, const std::vector<napi_value>& args,
                  napi_async_context context) {
  try {
    callback.MakeCallback(env.Global(), args, context);
  } catch (const Napi::Error& error) {
    napi_fatal_exception(env, error.Value());
  }
}

}  // namespace netplane
