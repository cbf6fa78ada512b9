// SPDX-License-Identifier: Apache-2.0
// Does one thing in another network namespace, on a thread of its own: setns would move this one. Layer: native.
#pragma once

#include <cerrno>
#include <fcntl.h>
#include <sched.h>
#include <string>
#include <thread>

#include "handle.h"

namespace netplane {

// Runs `work` there; returns its result, or -1 with errno, of which it may be the cause itself.
template <class Work>
int InNetns(const std::string& path, Work work) {
  Fd netns(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!netns.open()) return -1;
  int result = -1;
  int error = 0;
  std::thread([&] {
    if (setns(netns.get(), CLONE_NEWNET) == 0) result = work();
    error = errno;
  }).join();
  errno = error;
  return result;
}

}  // namespace netplane
