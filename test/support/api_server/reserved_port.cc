// SPDX-License-Identifier: Apache-2.0
#include "test/support/api_server/reserved_port.h"

#include <cerrno>
#include <utility>

#include <netinet/in.h>
#include <sys/socket.h>

#include "pkg/sys/files.h"

namespace resmgr::test {

StatusOr<ReservedPort> ReservedPort::Create() {
  UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  // Sockets that have all set this may be bound to one port while none of them listens. A port that
  // the kernel picks is none of those.
  const int yes = 1;
  ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  auto* plain = reinterpret_cast<sockaddr*>(&address);
  if (::bind(fd.get(), plain, size) != 0 || ::getsockname(fd.get(), plain, &size) != 0) {
    return ErrnoStatus(errno, "a port of 127.0.0.1");
  }
  return ReservedPort(std::move(fd), ntohs(address.sin_port));
}

}  // namespace resmgr::test
