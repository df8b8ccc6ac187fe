// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include "pkg/base/status.h"

namespace resmgr::nri {

// The process that has connected to a unix socket of ours, or that made a pair of them.
struct Peer {
  pid_t pid = 0;
  uid_t uid = 0;
};

StatusOr<Peer> PeerOf(int socket);

// What a plugin says of containers is carried out with our rights, so it has to have them already:
// it is root, or the user that runs this daemon.
bool MayBePlugin(const Peer& peer);

}  // namespace resmgr::nri
