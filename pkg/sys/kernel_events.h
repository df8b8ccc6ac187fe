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

// One uevent of the kernel: `action` ("offline") happened to the device `path`
// ("/devices/system/cpu/cpu9").
struct KernelEvent {
  std::string_view action{};
  std::string_view path{};
};

// Tells about CPUs that go offline or come online, as the kernel announces them by uevents
// (netlink, NETLINK_KOBJECT_UEVENT). A filter of the socket drops all other devices' events, so
// that pods whose network devices come and go do not wake the loop. Events can be lost while the
// loop is late, and a process in a user namespace of its own gets none: what depends on them must
// also look by itself. Loop's thread only.
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
