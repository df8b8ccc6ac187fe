// SPDX-License-Identifier: Apache-2.0
#include "pkg/sys/notify.h"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "pkg/base/parse.h"
#include "pkg/sys/files.h"
#include "pkg/sys/unique_fd.h"

namespace resmgr {
namespace {

Status Send(std::string_view message) {
  const char* variable = std::getenv("NOTIFY_SOCKET");
  if (variable == nullptr || *variable == '\0') return OkStatus();
  const std::string_view name = variable;
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if ((name.front() != '/' && name.front() != '@') || name.size() >= sizeof(address.sun_path)) {
    return InvalidArgument("NOTIFY_SOCKET={} is not a socket's name", Printable(name));
  }
  std::memcpy(address.sun_path, name.data(), name.size());
  // An abstract name begins with a zero byte; the length alone marks its end.
  if (name.front() == '@') address.sun_path[0] = '\0';
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size());

  const UniqueFd fd(::socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd.valid()) return ErrnoStatus(errno, "cannot create a socket");
  const ssize_t sent = ::sendto(fd.get(), message.data(), message.size(), MSG_NOSIGNAL,
                                reinterpret_cast<const sockaddr*>(&address), length);
  if (sent < 0) {
    return Unavailable("cannot notify {}: {}", name, std::generic_category().message(errno));
  }
  return OkStatus();
}

}  // namespace

bool HasServiceManager() {
  const char* const variable = std::getenv("NOTIFY_SOCKET");
  return variable != nullptr && *variable != '\0';
}

Status NotifyReady() {
  return Send("READY=1");
}

Status NotifyStopping() {
  return Send("STOPPING=1");
}

Status NotifyWatchdog() {
  return Send("WATCHDOG=1");
}

std::optional<std::chrono::microseconds> WatchdogPeriod() {
  const auto number = [](const char* name) {
    const char* const value = std::getenv(name);
    return value == nullptr ? std::nullopt : ParseUint(value);
  };
  const auto period = number("WATCHDOG_USEC");
  if (!period || *period == 0) return std::nullopt;
  if (std::getenv("WATCHDOG_PID") != nullptr &&
      number("WATCHDOG_PID") != static_cast<uint64_t>(::getpid())) {
    return std::nullopt;
  }
  constexpr std::chrono::hours kLongest{24};
  return std::min<std::chrono::microseconds>(
      std::chrono::microseconds(static_cast<int64_t>(std::min<uint64_t>(*period, INT64_MAX))),
      kLongest);
}

Status NotifyStatus(std::string_view text) {
  std::string message = "STATUS=";
  message += text;
  // A line break would start another assignment.
  std::replace(message.begin(), message.end(), '\n', ' ');
  return Send(message);
}

}  // namespace resmgr
