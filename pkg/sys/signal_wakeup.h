// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

namespace resmgr {

// Makes an fd readable when the process gets a signal, in place of the signal's default effect.
// Several may exist for one signal, in any thread; with the last of them the default effect is
// back. Unlike signalfd, no thread has to block the signal, and programs that are started do not
// inherit a mask.
class SignalWakeup {
 public:
  // A signal that cannot be caught, or more than kMaxSignalWakeups at once, is a bug that ends the
  // process.
  explicit SignalWakeup(int signal);
  ~SignalWakeup();
  SignalWakeup(const SignalWakeup&) = delete;
  SignalWakeup& operator=(const SignalWakeup&) = delete;

  // Readable after the signal, until Clear.
  int fd() const;
  void Clear();
  // The process that sent the last signal; 0: the kernel, or one of another PID namespace.
  pid_t sender() const;

 private:
  int slot_;
};

constexpr int kMaxSignalWakeups = 16;

}  // namespace resmgr
