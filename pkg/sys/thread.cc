// SPDX-License-Identifier: Apache-2.0
#include "pkg/sys/thread.h"

#include <csignal>
#include <string>
#include <utility>

#include <pthread.h>

namespace resmgr {
namespace {

// Blocks all signals while a thread is created, since the thread inherits the mask.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_ = {};
};

}  // namespace

std::thread StartThread(const char* name, std::function<void()> run) {
  const SignalsBlocked blocked;
  return std::thread([name = std::string(name), run = std::move(run)] {
    // The thread names itself: naming another thread opens a file in /proc.
    pthread_setname_np(pthread_self(), name.c_str());
    run();
  });
}

}  // namespace resmgr
