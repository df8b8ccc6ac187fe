// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
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
#include "pkg/sys/inherited_sockets.h"

namespace resmgr {

// Serves a socket at which a daemon that was started with -take-over asks for this daemon's sockets
// (pkg/sys/hand_over.h). The other daemon gets copies of them. When it is ready, the front door
// pauses, new clients wait in the sockets' queues, and this daemon ends. If the other daemon fails
// before that, this one goes on serving. Only one daemon at a time may ask, and only as the same
// user. Loop's thread only.
class HandOver {
 public:
  // Time limit for each of these: the other daemon's first message, its preparations, and its last
  // message.
  static constexpr std::chrono::seconds kPatience{10};

  struct Options {
    EventLoop& loop;
    FrontDoor& door;  // must have been started
    std::string version{};
    std::string socket{};  // path; "": not served
    // Why this daemon refuses to be replaced; "": it does not refuse.
    std::string refusal{};
    // Called when the door has paused and the other daemon waits for this one's end.
    std::function<void()> end{};
    uid_t user = ::geteuid();
    std::chrono::milliseconds patience = kPatience;
  };

  explicit HandOver(Options options);
  // The other daemon takes over when this object ends, so nothing may be written afterwards.
  ~HandOver();
  HandOver(const HandOver&) = delete;
  HandOver& operator=(const HandOver&) = delete;

  // Called when this daemon ends: no other daemon may ask any more, and one that waits takes over
  // after the end.
  void Stop();

  // The path of the take-over socket of the daemon that serves this relay socket.
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
  // Gives up the take-over and goes on serving.
  void Abandon(const Status& why);
  void Resume();
  void Expect(Step step, std::string_view what);

  const Options options_;
  Logger& log_;
  Step step_ = Step::kServing;
  // The connection of the daemon that asks; nullopt: none does.
  std::optional<HandOverChannel> other_;
  pid_t other_process_ = 0;
  std::vector<OpenSockets::Copy> copies_;  // keep the queues of sockets that the door closes
  EventLoop::HandlePtr watch_;
  EventLoop::HandlePtr deadline_;
  EventLoop::HandlePtr resume_again_;
  uint64_t pauses_ = 0;  // number of pauses, to recognize late answers about a former one
  Acceptor acceptor_;
  OptionalListener served_;  // last, since it may call Serve at once
};

// The side that takes over from another daemon (pkg/sys/hand_over.h). Every function waits, with a
// deadline, so it is used before the loop runs. If this object or this process ends before Finish,
// the other daemon goes on serving.
class TakeOver {
 public:
  struct Options {
    std::string socket{};  // HandOver::SocketOf the other daemon's relay socket
    std::string version{};
    // Time limit for the other daemon's sockets, and for its end once no calls are in flight.
    std::chrono::milliseconds answer{10'000};
    // Time limit for the other daemon's calls in flight: longer than its own limit.
    std::chrono::milliseconds drain{30'000};
  };

  // Asks the other daemon for its sockets and puts them into InheritedSockets. nullptr: no daemon
  // is running. kFailedPrecondition: the other daemon refuses, and the message has its reason, or
  // it runs as another user. kDeadlineExceeded: it does not answer in time.
  static StatusOr<std::unique_ptr<TakeOver>> Begin(Options options);

  // Waits until the other daemon has ended or died; from then on clients wait for this one. Closes
  // inherited sockets that are not at `paths`. After an error the other daemon goes on serving.
  Status Finish(const std::vector<std::string>& paths);

 private:
  TakeOver(Options options, HandOverChannel channel, UniqueFd process)
      : options_(std::move(options)), channel_(std::move(channel)), process_(std::move(process)) {}

  Status ReceiveSockets();
  void WaitForExit() const;

  const Options options_;
  HandOverChannel channel_;
  // A pidfd of the other daemon; none if it is in another PID namespace.
  const UniqueFd process_;
};

}  // namespace resmgr
