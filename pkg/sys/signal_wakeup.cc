// SPDX-License-Identifier: Apache-2.0
#include "pkg/sys/signal_wakeup.h"

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <mutex>

#include <sys/eventfd.h>
#include <unistd.h>

namespace resmgr {
namespace {

// Slots that the handler reads. A slot keeps its eventfd for ever: otherwise a handler on another
// thread could write to a descriptor that has got the number since.
struct Slot {
  std::atomic<int> signal{0};  // 0: free
  std::atomic<int> fd{-1};
  std::atomic<pid_t> sender{0};
};

static_assert(std::atomic<int>::is_always_lock_free);

std::mutex g_mutex;  // guards taking and releasing slots; the handler does not use it
std::array<Slot, kMaxSignalWakeups> g_slots;

void OnDelivery(int signal, siginfo_t* info, void*) {
  const int error = errno;
  for (Slot& slot : g_slots) {
    if (slot.signal.load() != signal) continue;
    slot.sender = info->si_pid;
    const uint64_t one = 1;
    [[maybe_unused]] const ssize_t written = ::write(slot.fd.load(), &one, sizeof(one));
  }
  errno = error;
}

void SetAction(int signal, struct sigaction action) {
  sigfillset(&action.sa_mask);
  if (::sigaction(signal, &action, nullptr) == 0) return;
  std::perror("catching a signal");
  std::abort();
}

int FreeSlot() {
  for (int i = 0; i < kMaxSignalWakeups; ++i) {
    if (g_slots[static_cast<size_t>(i)].signal.load() == 0) return i;
  }
  std::fprintf(stderr, "more than %d watches of signals\n", kMaxSignalWakeups);
  std::abort();
}

Slot& At(int slot) {
  return g_slots[static_cast<size_t>(slot)];
}

}  // namespace

SignalWakeup::SignalWakeup(int signal) {
  const std::lock_guard lock(g_mutex);
  slot_ = FreeSlot();
  Slot& slot = At(slot_);
  if (slot.fd.load() < 0) slot.fd = ::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  if (slot.fd.load() < 0) {
    std::perror("creating an eventfd");
    std::abort();
  }
  Clear();
  slot.signal = signal;
  struct sigaction action = {};
  action.sa_sigaction = OnDelivery;
  action.sa_flags = SA_RESTART | SA_SIGINFO;
  SetAction(signal, action);
}

SignalWakeup::~SignalWakeup() {
  const std::lock_guard lock(g_mutex);
  const int signal = At(slot_).signal.exchange(0);
  for (const Slot& slot : g_slots) {
    if (slot.signal.load() == signal) return;
  }
  struct sigaction action = {};
  action.sa_handler = SIG_DFL;
  SetAction(signal, action);
}

int SignalWakeup::fd() const {
  return At(slot_).fd.load();
}

pid_t SignalWakeup::sender() const {
  return At(slot_).sender.load();
}

void SignalWakeup::Clear() {
  uint64_t count = 0;
  [[maybe_unused]] const ssize_t got = ::read(fd(), &count, sizeof(count));
}

}  // namespace resmgr
