// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "pkg/grpc/unary_server.h"
#include "pkg/h2/flush_queue.h"
#include "pkg/metrics/metrics_server.h"
#include "pkg/model/problem.h"
#include "pkg/sys/backoff.h"
#include "pkg/sys/event_loop.h"
#include "pkg/sys/off_loop.h"
#include "pkg/sys/unix_socket.h"

namespace resmgr {

// Services without which the node still works. If one cannot be served (another instance has not
// ended yet, a port is in use), that is logged as a warning and tried again, first after 100 ms and
// finally every ten seconds. Loop's thread only.

inline constexpr std::chrono::milliseconds kFirstTryPause{100};
inline constexpr std::chrono::milliseconds kLastTryPause{10'000};

// Since when a service is not served, and why.
struct Unserved {
  std::chrono::system_clock::time_point since{};
  Status why{};  // of the last attempt

  // The problem "socket" for the service at this place.
  Problem ProblemOf(const std::string& place) const;
};

// Attempts to serve at a place, until one succeeds.
class ServingAttempts {
 public:
  // `attempt` runs off the loop; its task ends with Succeeded or Failed.
  ServingAttempts(EventLoop& loop, std::string place, std::string thread, OffLoop::Work attempt);

  void Try();
  void Succeeded() { unserved_.reset(); }
  // Tries again after a pause. Returns whether this is the first failure, which is to be logged.
  bool Failed(const Status& why);
  bool ever_failed() const { return ever_failed_; }
  // The problem; nullopt if the place is served.
  std::optional<Problem> problem() const;

 private:
  EventLoop& loop_;
  const std::string place_;
  const OffLoop::Work attempt_;
  bool ever_failed_ = false;
  std::optional<Unserved> unserved_;
  Backoff pauses_{kFirstTryPause, kLastTryPause};
  EventLoop::HandlePtr retry_;
  OffLoop off_loop_;
};

// A socket of the node, besides the front door. Its file system may hang, so attempts are made off
// the loop, except for the first one, which is before the loop runs.
class OptionalListener {
 public:
  using Listener = StatusOr<ListeningSocket>;
  // Creates the socket at a path; called on any thread, until the process ends.
  using Make = std::function<Listener(const std::string& path)>;
  using Serve = std::function<void(ListeningSocket listener)>;

  // The thread of the first attempt: this one, before the loop runs, or one off the loop.
  enum class FirstTry { kHere, kOffLoop };

  // Makes the socket, and calls `serve` once when it exists. An empty path serves nothing. Objects
  // passed by reference must outlive this one.
  OptionalListener(EventLoop& loop, std::string path, Serve serve, Make make,
                   FirstTry first = FirstTry::kHere);

  std::optional<Problem> problem() const { return attempts_.problem(); }

 private:
  void Take(Listener listener);

  const std::string path_;
  const Serve serve_;
  ServingAttempts attempts_;
};

// A socket that serves gRPC methods.
class OptionalSocket {
 public:
  OptionalSocket(
      EventLoop& loop, h2::FlushQueue& flushes, std::string path, UnaryServer::Methods methods,
      OptionalListener::Make make =
          [](const std::string& path) { return ListeningSocket::Create(path); },
      OptionalListener::FirstTry first = OptionalListener::FirstTry::kHere,
      UnaryServer::Streams streams = {});

  // The problem; nullopt if the socket is served.
  std::optional<Problem> problem() const { return listener_.problem(); }
  bool served() const { return server_ != nullptr; }

 private:
  std::unique_ptr<UnaryServer> server_;
  OptionalListener listener_;  // last, since it creates the server
};

// The HTTP server of the metrics. A name of a host needs a look-up, so all attempts are made off
// the loop, except for the first one with an address in numbers.
class OptionalMetrics {
 public:
  // An empty address serves nothing; `served` is unused then.
  OptionalMetrics(EventLoop& loop, std::string address, ServedMetrics served);

  // The problem; nullopt if the address is served.
  std::optional<Problem> problem() const { return attempts_.problem(); }

 private:
  using Server = StatusOr<std::unique_ptr<MetricsServer>>;

  void Take(Server server);

  std::unique_ptr<MetricsServer> server_;
  ServingAttempts attempts_;
};

}  // namespace resmgr
