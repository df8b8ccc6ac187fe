// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include "pkg/base/status.h"

namespace resmgr::nri {

// The process at the other end of a unix socket: the one that connected, or that created the pair.
struct Peer {
  pid_t pid = 0;
  uid_t uid = 0;
};

StatusOr<Peer> PeerOf(int socket);

// Plugins' updates are carried out with the daemon's rights, so a plugin must have these rights
// itself: it runs as root, or as the daemon's user.
bool MayBePlugin(const Peer& peer);

}  // namespace resmgr::nri
