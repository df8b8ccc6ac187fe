// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

namespace resmgr {

// Makes an fd readable when the process gets a signal, in place of the signal's default effect.
// Several objects may exist for one signal, in any thread; when the last one ends, the default
// effect is back, unless the signal is held. Unlike with signalfd, no thread has to block the
// signal, so child programs do not inherit a mask.
class SignalWakeup {
 public:
  // Ends the process if the signal cannot be caught, or for more than kMaxSignalWakeups at once:
  // both are bugs.
  explicit SignalWakeup(int signal);
  ~SignalWakeup();
  SignalWakeup(const SignalWakeup&) = delete;
  SignalWakeup& operator=(const SignalWakeup&) = delete;

  // Readable after the signal, until Clear.
  int fd() const;
  void Clear();
  // The process that sent the last signal; 0 for the kernel and for a process of another PID
  // namespace.
  pid_t sender() const;

 private:
  int slot_;
};

constexpr int kMaxSignalWakeups = 16;

// From now until the process ends the signal has no default effect. If it comes while there is no
// SignalWakeup for it, the next SignalWakeup is readable from the beginning. Called first in
// `main`, so that a signal does not end a program that will handle it, or that is ending. Programs
// that this process starts have the default effect. At most kMaxHeldSignals different signals.
void HoldSignal(int signal);

constexpr int kMaxHeldSignals = 4;

}  // namespace resmgr
