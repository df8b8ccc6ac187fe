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

// A held signal, and whether it came while it had no slot.
struct Held {
  std::atomic<int> signal{0};  // 0: free
  std::atomic<bool> came{false};
  std::atomic<pid_t> sender{0};
};

static_assert(std::atomic<int>::is_always_lock_free);
static_assert(std::atomic<bool>::is_always_lock_free);

std::mutex g_mutex;  // guards taking and releasing slots; the handler does not use it
std::array<Slot, kMaxSignalWakeups> g_slots;
std::array<Held, kMaxHeldSignals> g_held;

void Deliver(Slot& slot, pid_t sender) {
  slot.sender = sender;
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(slot.fd.load(), &one, sizeof(one));
}

void OnDelivery(int signal, siginfo_t* info, void*) {
  const int error = errno;
  bool delivered = false;
  for (Slot& slot : g_slots) {
    if (slot.signal.load() != signal) continue;
    Deliver(slot, info->si_pid);
    delivered = true;
  }
  for (Held& held : g_held) {
    if (delivered || held.signal.load() != signal) continue;
    held.sender = info->si_pid;
    held.came = true;
  }
  errno = error;
}

Held* FindHeld(int signal) {
  for (Held& held : g_held) {
    if (held.signal.load() == signal) return &held;
  }
  return nullptr;
}

void SetAction(int signal, struct sigaction action) {
  sigfillset(&action.sa_mask);
  if (::sigaction(signal, &action, nullptr) == 0) return;
  std::perror("catching a signal");
  std::abort();
}

void Catch(int signal) {
  struct sigaction action = {};
  action.sa_sigaction = OnDelivery;
  action.sa_flags = SA_RESTART | SA_SIGINFO;
  SetAction(signal, action);
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
  Catch(signal);
  Held* const held = FindHeld(signal);
  if (held != nullptr && held->came.exchange(false)) Deliver(slot, held->sender.load());
}

SignalWakeup::~SignalWakeup() {
  const std::lock_guard lock(g_mutex);
  const int signal = At(slot_).signal.exchange(0);
  for (const Slot& slot : g_slots) {
    if (slot.signal.load() == signal) return;
  }
  if (FindHeld(signal) != nullptr) return;
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

void HoldSignal(int signal) {
  const std::lock_guard lock(g_mutex);
  if (FindHeld(signal) != nullptr) return;
  Held* const held = FindHeld(0);
  if (held == nullptr) {
    std::fprintf(stderr, "more than %d signals are held\n", kMaxHeldSignals);
    std::abort();
  }
  held->signal = signal;
  Catch(signal);
}

}  // namespace resmgr
