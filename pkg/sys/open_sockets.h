// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "pkg/base/status.h"
#include "pkg/sys/inherited_sockets.h"

namespace resmgr {

// The unix sockets that this process listens on, so that it can share them with the process that is
// to serve in its place (hand_over.h). ListeningSocket keeps the list. Thread-safe.
class OpenSockets {
 public:
  // File descriptors of its own for the same socket and the same claim on its path.
  struct Copy {
    std::string path;
    InheritedSockets::Socket socket;
  };

  // The one of this process.
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
