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
// before (hand_over.h). ListeningSocket::Create takes them from here, so that the server of a path
// need not know where its socket comes from. Thread-safe.
class InheritedSockets {
 public:
  struct Socket {
    UniqueFd fd;    // listens
    UniqueFd lock;  // the claim on its path (unix_socket.h), if it was made already
    // The file belongs to another process, which keeps it when we end.
    bool kept_by_other = false;
  };

  // The one of this process.
  static InheritedSockets& Instance();

  // Takes over the descriptors of $LISTEN_FDS if $LISTEN_PID is this process, and unsets both
  // variables, so that no child uses them. Only listening unix sockets with a path are taken.
  // Returns their number. Called once, before there are threads.
  size_t AddFromEnvironment();
  void Add(std::string path, Socket socket);
  // Gives the caller the socket whose file is at this path, under any name (/var/run is /run).
  std::optional<Socket> Take(std::string_view path);
  // Paths of the sockets that were not taken.
  std::vector<std::string> Paths() const;

 private:
  mutable std::mutex mutex_;
  std::map<std::string, Socket, std::less<>> sockets_;
};

}  // namespace resmgr
