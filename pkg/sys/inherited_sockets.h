// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pkg/sys/unique_fd.h"

namespace resmgr {

// Listening unix sockets that this process was given, by their path: by the service manager, which
// keeps them over restarts (systemd.socket(5), sd_listen_fds(3)), or by the process that served
// before (hand_over.h). ListeningSocket::Create takes them from here, so that whatever serves a
// path needs not know where its socket comes from. Thread-safe.
class InheritedSockets {
 public:
  struct Socket {
    UniqueFd fd;    // listens
    UniqueFd lock;  // the claim on its path (unix_socket.h); not valid: it is to be made
    // The file belongs to another process, which keeps it when we end.
    bool kept_by_other = false;
  };

  // The one of this process.
  static InheritedSockets& Instance();

  // Takes what $LISTEN_FDS names over where $LISTEN_PID is this process, and unsets both, so that
  // no child takes them for its own. Others than listening unix sockets with a path stay as they
  // are. Returns how many it took. Once, before there are threads.
  size_t AddFromEnvironment();
  void Add(std::string path, Socket socket);
  // The one whose file is at this path, by whatever name it came (/var/run is /run); it is then the
  // caller's.
  std::optional<Socket> Take(std::string_view path);
  // Paths of the sockets that were not taken.
  std::vector<std::string> Paths() const;

 private:
  mutable std::mutex mutex_;
  std::map<std::string, Socket, std::less<>> sockets_;
};

}  // namespace resmgr
