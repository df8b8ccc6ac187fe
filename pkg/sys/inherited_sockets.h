// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pkg/base/status.h"
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

  // The only object of this process.
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

// The unix sockets that this process listens on, so that it can share them with the process that is
// to serve in its place (hand_over.h). ListeningSocket keeps the list. Thread-safe.
class OpenSockets {
 public:
  // File descriptors of its own for the same socket and the same claim on its path.
  struct Copy {
    std::string path;
    InheritedSockets::Socket socket;
  };

  // The only object of this process.
  static OpenSockets& Instance();

  // A socket that listens at the path; the descriptors stay the caller's.
  void Add(std::string path, int fd, int lock, bool kept_by_other);
  // Forgets the socket of this descriptor, which is closed now. True: the caller must remove its
  // file, since no other process has the socket.
  bool Close(int fd);
  bool Has(std::string_view path) const;

  // Copies of all that are open, for another process. From now on their files are not removed when
  // they are closed. ResourceExhausted: no descriptors are left; nothing is shared then.
  StatusOr<std::vector<Copy>> Share();
  // The other process has closed its own: everything is as before Share.
  void TakeBack();

 private:
  struct Entry {
    std::string path;
    int fd;
    int lock;
    bool kept_by_other;
    bool shared;
  };

  mutable std::mutex mutex_;
  std::vector<Entry> entries_;
};

}  // namespace resmgr
