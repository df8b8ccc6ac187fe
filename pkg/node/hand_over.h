// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>
#include <unistd.h>

#include "pkg/base/status.h"
#include "pkg/log/log.h"
#include "pkg/node/front_door.h"
#include "pkg/node/optional_services.h"
#include "pkg/sys/acceptor.h"
#include "pkg/sys/event_loop.h"
#include "pkg/sys/hand_over.h"
#include "pkg/sys/open_sockets.h"

namespace resmgr {

// Serves a socket at which a daemon started with -take-over asks for this one's sockets
// (pkg/sys/hand_over.h): they are copied to it, and when it is ready the front door pauses, new
// clients wait in the sockets' queues, and this daemon ends. If the other daemon fails before that,
// this one serves on. One at a time, of the same user. Loop's thread only.
class HandOver {
 public:
  // Time limit for the other daemon's first message, its preparations, and its last message.
  static constexpr std::chrono::seconds kPatience{10};

  struct Options {
    EventLoop& loop;
    FrontDoor& door;  // must be started
    std::string version{};
    std::string socket{};  // "": not served
    // The reason why this daemon refuses to be replaced; "": it does not.
    std::string refusal{};
    // Called when the door has paused, and the other daemon waits for this one's end.
    std::function<void()> end{};
    uid_t user = ::geteuid();
    std::chrono::milliseconds patience = kPatience;
  };

  explicit HandOver(Options options);
  // The other daemon goes on only now, so nothing may be written afterwards.
  ~HandOver();
  HandOver(const HandOver&) = delete;
  HandOver& operator=(const HandOver&) = delete;

  // This daemon ends: no other daemon may ask any more, and one that waits goes on after the end.
  void Stop();

  // The path of this socket for the daemon with that relay socket.
  static std::string SocketOf(std::string_view relay_socket) {
    return std::string(relay_socket) + ".take-over";
  }

 private:
  enum class Step { kServing, kAsked, kOffered, kPausing, kPaused, kEnding };

  void Serve(ListeningSocket listener);
  void Begin(UniqueFd socket);
  void Read();
  Status OnMessage(std::string_view message);
  Status Offer(std::string_view asked);
  void Pause();
  // Gives up and serves on.
  void Abandon(const Status& why);
  void Resume();
  void Expect(Step step, std::string_view what);

  const Options options_;
  Logger& log_;
  Step step_ = Step::kServing;
  // The connection of the daemon that asks, if any.
  std::optional<HandOverChannel> other_;
  pid_t other_process_ = 0;
  std::vector<OpenSockets::Copy> copies_;  // keep the queues of sockets that the door closes
  EventLoop::HandlePtr watch_;
  EventLoop::HandlePtr deadline_;
  EventLoop::HandlePtr resume_again_;
  uint64_t pauses_ = 0;  // the door may tell the end of a former pause late
  Acceptor acceptor_;
  OptionalListener served_;  // last, since it calls Serve
};

}  // namespace resmgr
