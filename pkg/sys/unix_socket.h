// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

#include "pkg/base/status.h"
#include "pkg/sys/inherited_sockets.h"
#include "pkg/sys/unique_fd.h"

namespace resmgr {

// Stream sockets in the file system. All file descriptors returned here are non-blocking and closed
// on exec. A path of more than 107 bytes does not fit into an address of the kernel:
// kInvalidArgument.

// "unix:///run/x.sock" -> "/run/x.sock"; anything else stays as it is. A view into the argument.
std::string_view StripUnixPrefix(std::string_view address);

// kInvalidArgument for a path that no socket can have on any file system.
Status CheckUnixPath(std::string_view path);

// Connects at once or not at all. kUnavailable if there is no listener or its queue is full; a
// later attempt may succeed.
StatusOr<UniqueFd> ConnectUnix(std::string_view path);

// Claims a path by locking `<path>.lock`, as long as the result is open: the kernel drops the lock
// when this process ends in any way. AlreadyExists: another process has the claim.
StatusOr<UniqueFd> ClaimPath(const std::string& path);

// Closes inherited sockets except those at these paths, and removes their files unless these belong
// to another process.
void DropInherited(const std::vector<std::string>& but);

// Accepts the next connection of a listening socket of any kind; nullopt if none waits.
// kResourceExhausted if this process or the machine has no fd left: the connection goes on waiting.
StatusOr<std::optional<UniqueFd>> AcceptOn(int fd);

// A socket that we listen on, with a claim on its path: two instances of the daemon never share a
// path, and the second never takes it from the first. The claim is a lock on `<path>.lock`, a file
// that stays behind, because removing it would let two instances lock two different files.
// Thread-compatible.
class ListeningSocket {
 public:
  // The widest mode that a socket may have: its peers act with this daemon's rights.
  static constexpr mode_t kMaxMode = 0660;

  // Any user may pass the directory: the socket's own mode decides who may connect.
  static constexpr mode_t kDirectoryMode = 0711;

  // Takes an inherited socket for the path (inherited_sockets.h), whose file stays with its giver.
  // If there is none, makes a missing parent directory, removes a socket file that no process
  // listens on, and makes the socket. Bits of `mode` beyond kMaxMode are dropped.
  //   kAlreadyExists       another process serves the path (ours or any other)
  //   kFailedPrecondition  the path is something else than a socket
  //   kUnavailable         the file system refuses
  static StatusOr<ListeningSocket> Create(std::string_view path, mode_t mode = kMaxMode,
                                          mode_t directory_mode = kDirectoryMode);

  ListeningSocket(ListeningSocket&& other) noexcept = default;
  ListeningSocket& operator=(ListeningSocket&& other) noexcept;
  // Stops listening and removes the socket file, unless another file replaced it or another process
  // also has the socket (OpenSockets).
  ~ListeningSocket();

  // As AcceptOn.
  StatusOr<std::optional<UniqueFd>> Accept();

  // Gives the file another name, in place of a file that has it; the claim stays that on the former
  // path.
  Status Rename(const std::string& path);

  int fd() const { return fd_.get(); }
  const std::string& path() const { return path_; }

 private:
  ListeningSocket(std::string path, UniqueFd lock, UniqueFd fd, bool kept_by_other);
  static StatusOr<ListeningSocket> Adopt(const std::string& path,
                                         InheritedSockets::Socket inherited);
  Status FindFile();
  Status Listen();
  void Remove();

  std::string path_;
  UniqueFd lock_;
  UniqueFd fd_;
  // Identify this socket's file, so that no other file at the path is removed.
  dev_t device_ = 0;
  ino_t inode_ = 0;
};

}  // namespace resmgr
