// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <csignal>

#include <sys/resource.h>

namespace resmgr::dump {

// While it lives, this process's files have room for so many bytes.
class FullAfter {
 public:
  explicit FullAfter(rlim_t bytes) : handler_(::signal(SIGXFSZ, SIG_IGN)) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit = {bytes, before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FullAfter() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    ::signal(SIGXFSZ, handler_);
  }
  FullAfter(const FullAfter&) = delete;
  FullAfter& operator=(const FullAfter&) = delete;

 private:
  void (*const handler_)(int);
  rlimit before_{};
};

}  // namespace resmgr::dump
