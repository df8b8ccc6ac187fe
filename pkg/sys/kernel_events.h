// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string_view>

#include "pkg/base/status.h"
#include "pkg/sys/event_loop.h"
#include "pkg/sys/unique_fd.h"

namespace resmgr {

// One uevent of the kernel: `action` ("offline") has happened to the device `path`
// ("/devices/system/cpu/cpu9").
struct KernelEvent {
  std::string_view action{};
  std::string_view path{};
};

// Reports CPUs that go offline or come online, as the kernel announces them by uevents (netlink,
// NETLINK_KOBJECT_UEVENT). A socket filter drops the events of most other devices, so that pods
// whose network devices come and go do not wake the loop. Events can be lost while the loop is
// late, and a process in its own user namespace gets none: users of the events must also look by
// themselves. Loop's thread only.
class KernelEvents {
 public:
  // `tell` must not destroy this object. kFailedPrecondition or kUnavailable: the kernel, or the
  // service manager by RestrictAddressFamilies, does not allow such a socket.
  static StatusOr<std::unique_ptr<KernelEvents>> Listen(
      EventLoop& loop, std::function<void(const KernelEvent&)> tell);

  // Reads the first line of an event, "offline@/devices/system/cpu/cpu9". Views into `datagram`.
  static std::optional<KernelEvent> Parse(std::string_view datagram);

 private:
  KernelEvents(UniqueFd socket, std::function<void(const KernelEvent&)> tell)
      : socket_(std::move(socket)), tell_(std::move(tell)) {}
  void Read();

  UniqueFd socket_;
  std::function<void(const KernelEvent&)> tell_;
  EventLoop::HandlePtr watch_;
};

}  // namespace resmgr
