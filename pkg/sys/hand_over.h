// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include <sys/types.h>

#include "pkg/base/status.h"
#include "pkg/sys/inherited_sockets.h"
#include "pkg/sys/unique_fd.h"

namespace resmgr {

// How a daemon hands its listening sockets to the one that is to serve in its place, over a
// connected unix socket. Messages are texts, each ended by a zero byte:
//
//   successor                        predecessor
//   take-over 1 VERSION         ->
//                               <-   socket own|kept PATH   for each, with two descriptors: the
//                                    socket and the claim on its path; kept: the file is a service
//                                    manager's
//                               <-   all VERSION
//   drain                       ->                          it could serve
//                               <-   drained                no call is in flight any more
//   end                         ->                          it is still there
//                               <-   (end of the connection) the predecessor has ended
//
// `no REASON`, at any time before `end`, is the predecessor's last message: the predecessor goes on
// serving, also if the successor ends before sending `end`. If the predecessor ends without
// `no REASON`, for any cause, the successor serves.

// One end of a connection for handing over. Not thread-safe.
class HandOverChannel {
 public:
  // Limits of what a peer may send: a longer message, or more sockets, end the connection.
  static constexpr size_t kLongestMessage = 512;
  static constexpr size_t kMostSockets = 64;

  enum class Files { kTake, kRefuse };

  // The socket is connected and non-blocking. Files::kRefuse: received descriptors are closed.
  HandOverChannel(UniqueFd socket, Files files) : socket_(std::move(socket)), files_(files) {}

  // Never waits. Unavailable: the peer is gone, or reads nothing.
  Status Send(std::string_view message, std::span<const int> files = {});
  Status SendSocket(const OpenSockets::Copy& copy);

  // The next message, if it has come. Unavailable: the connection is over. InvalidArgument: the
  // received bytes are not a message.
  StatusOr<std::optional<std::string>> Next();
  // Waits for the next message. DeadlineExceeded: none came in time.
  StatusOr<std::string> Await(std::chrono::milliseconds timeout);
  // The socket that came with a `socket` message. InvalidArgument: it is none.
  StatusOr<OpenSockets::Copy> ReadSocket(std::string_view message);

  // The user and the process at the other end, as the kernel knows them (SO_PEERCRED of unix(7)).
  struct Peer {
    uid_t user;
    pid_t process;
  };
  StatusOr<Peer> peer() const;
  int fd() const { return socket_.get(); }

 private:
  Status Receive(bool& any);

  UniqueFd socket_;
  Files files_;
  bool over_ = false;
  std::string received_;
  std::deque<UniqueFd> received_files_;
};

}  // namespace resmgr
