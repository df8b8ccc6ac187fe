// SPDX-License-Identifier: Apache-2.0
#include "pkg/nri/host/session/peer.h"

#include <cerrno>

#include <sys/socket.h>
#include <unistd.h>

#include "pkg/sys/errno_status.h"

namespace resmgr::nri {

StatusOr<Peer> PeerOf(int socket) {
  ucred credentials{};
  socklen_t size = sizeof(credentials);
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &credentials, &size) != 0) {
    return ErrnoStatus(errno, "cannot find out which process has connected");
  }
  return Peer{.pid = credentials.pid, .uid = credentials.uid};
}

bool MayBePlugin(const Peer& peer) {
  return peer.uid == 0 || peer.uid == ::geteuid();
}

}  // namespace resmgr::nri
