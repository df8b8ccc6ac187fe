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

// Listening unix sockets, by path, that this process got from the service manager, which keeps them
// over restarts (systemd.socket(5), sd_listen_fds(3)), or from the process that served before
// (hand_over.h). ListeningSocket::Create takes them from here, so the server of a path need not
// know where its socket comes from. Thread-safe.
class InheritedSockets {
 public:
  struct Socket {
    UniqueFd fd;    // the listening socket
    UniqueFd lock;  // the claim on its path (unix_socket.h), if there is one already
    // The socket's file belongs to another process, so it stays when this one ends.
    bool kept_by_other = false;
  };

  // The only object of this process.
  static InheritedSockets& Instance();

  // Takes over the descriptors of $LISTEN_FDS if $LISTEN_PID is this process, and unsets both
  // variables, so that no child uses them. Only listening unix sockets with a path are taken.
  // Returns their number. Called once, before there are threads.
  size_t AddFromEnvironment();
  void Add(std::string path, Socket socket);
  // Gives the socket of the file at this path to the caller; paths may differ by links (/var/run is
  // /run).
  std::optional<Socket> Take(std::string_view path);
  // Paths of the sockets that were not taken.
  std::vector<std::string> Paths() const;

 private:
  mutable std::mutex mutex_;
  std::map<std::string, Socket, std::less<>> sockets_;
};

// The unix sockets that this process listens on, for sharing them with the process that will
// replace it (hand_over.h). ListeningSocket keeps the list. Thread-safe.
class OpenSockets {
 public:
  // Duplicates of the descriptors of a socket and of the claim on its path.
  struct Copy {
    std::string path;
    InheritedSockets::Socket socket;
  };

  // The only object of this process.
  static OpenSockets& Instance();

  // Adds a socket that listens at the path; the descriptors stay the caller's.
  void Add(std::string path, int fd, int lock, bool kept_by_other);
  // Forgets the socket of this descriptor, which the caller is about to close. True: no other
  // process has the socket, so the caller must remove its file.
  bool Close(int fd);
  bool Has(std::string_view path) const;

  // Duplicates of all open sockets, for another process. From now on closing a socket does not
  // remove its file. ResourceExhausted: no descriptors are left; then nothing is shared.
  StatusOr<std::vector<Copy>> Share();
  // Called when the other process has closed its duplicates: undoes Share.
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
