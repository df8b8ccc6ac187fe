// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
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

// Serves a socket at which a daemon that was started with -take-over asks for the sockets of this
// one (pkg/sys/hand_over.h): they are copied to it, and when it is ready the front door pauses,
// clients that come now wait in the sockets' queues, and this daemon ends. Whenever the other one
// fails before that, this one serves on. One at a time, of our own user. Loop's thread only.
class HandOver {
 public:
  // How long the other daemon may take: to say what it wants, to prepare, and for its last word.
  static constexpr std::chrono::seconds kPatience{10};

  struct Options {
    EventLoop& loop;
    FrontDoor& door;  // started
    std::string version{};
    std::string socket{};  // "" serves nothing
    // Why this daemon is not to be replaced so; "": it may be.
    std::string refusal{};
    // The door has paused, and the other daemon waits for the end of this one.
    std::function<void()> end{};
    uid_t user = ::geteuid();
    std::chrono::milliseconds patience = kPatience;
  };

  explicit HandOver(Options options);
  // Only now the other daemon goes on, so nothing may be written after it.
  ~HandOver();
  HandOver(const HandOver&) = delete;
  HandOver& operator=(const HandOver&) = delete;

  // This daemon ends anyway: nothing is asked for any more, and one that waits goes on when this
  // has ended.
  void Stop();

  // Where the daemon that serves this socket is asked.
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
  // Serves on.
  void Abandon(const Status& why);
  void Resume();
  void Expect(Step step, std::string_view what);

  const Options options_;
  Logger& log_;
  Step step_ = Step::kServing;
  // Of the daemon that asks, while there is one.
  std::optional<HandOverChannel> other_;
  pid_t other_process_ = 0;
  std::vector<OpenSockets::Copy> copies_;  // so that the queues of what the door closes go on
  EventLoop::HandlePtr watch_;
  EventLoop::HandlePtr deadline_;
  EventLoop::HandlePtr resume_again_;
  Acceptor acceptor_;
  OptionalListener served_;  // last, since it calls Serve
};

}  // namespace resmgr
