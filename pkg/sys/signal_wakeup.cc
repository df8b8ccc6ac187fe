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

// What the handler looks at. An eventfd stays with its slot for ever: a handler that runs on
// another thread while a slot is given up would otherwise write to whatever got the number next.
struct Slot {
  std::atomic<int> signal{0};  // 0: free
  std::atomic<int> fd{-1};
};

static_assert(std::atomic<int>::is_always_lock_free);

std::mutex g_mutex;  // taking and giving up of slots; the handler knows nothing of it
std::array<Slot, kMaxSignalWakeups> g_slots;

void OnDelivery(int signal) {
  const int error = errno;
  for (const Slot& slot : g_slots) {
    if (slot.signal.load() != signal) continue;
    const uint64_t one = 1;
    [[maybe_unused]] const ssize_t written = ::write(slot.fd.load(), &one, sizeof(one));
  }
  errno = error;
}

void SetHandler(int signal, void (*handler)(int)) {
  struct sigaction action = {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
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
  SetHandler(signal, OnDelivery);
}

SignalWakeup::~SignalWakeup() {
  const std::lock_guard lock(g_mutex);
  const int signal = At(slot_).signal.exchange(0);
  for (const Slot& slot : g_slots) {
    if (slot.signal.load() == signal) return;
  }
  SetHandler(signal, SIG_DFL);
}

int SignalWakeup::fd() const {
  return At(slot_).fd.load();
}

void SignalWakeup::Clear() {
  uint64_t count = 0;
  [[maybe_unused]] const ssize_t got = ::read(fd(), &count, sizeof(count));
}

}  // namespace resmgr
