// SPDX-License-Identifier: Apache-2.0
#include "pkg/node/optional_services.h"

#include <utility>

#include "pkg/log/log.h"

namespace resmgr {
namespace {

// How long the daemon's end waits for an attempt that is under way.
constexpr std::chrono::milliseconds kRetryPatience{100};

}  // namespace

Problem Unserved::ProblemOf(const std::string& place) const {
  return {.kind = "socket",
          .since = since,
          .message = fmt::format("{} is not served, and is tried again: {}", place, Message(why)),
          .objects = {place},
          .next = "ss -lxtp, which names the process that has it"};
}

ServingAttempts::ServingAttempts(EventLoop& loop, std::string place, std::string thread,
                                 OffLoop::Work attempt)
    : loop_(loop),
      place_(std::move(place)),
      attempt_(std::move(attempt)),
      off_loop_(loop, std::move(thread), kRetryPatience) {}

void ServingAttempts::Try() {
  const Status begun = off_loop_.Run(attempt_);
  if (!begun.ok()) retry_ = loop_.After(pauses_.Next(), [this] { Try(); });
}

bool ServingAttempts::Failed(const Status& why) {
  if (!unserved_) unserved_ = Unserved{.since = std::chrono::system_clock::now()};
  unserved_->why = why;
  retry_ = loop_.After(pauses_.Next(), [this] { Try(); });
  return !std::exchange(ever_failed_, true);
}

std::optional<Problem> ServingAttempts::problem() const {
  return unserved_ ? std::optional(unserved_->ProblemOf(place_)) : std::nullopt;
}

OptionalListener::OptionalListener(EventLoop& loop, std::string path, Serve serve, Make make,
                                   FirstTry first)
    : path_(std::move(path)),
      serve_(std::move(serve)),
      attempts_(loop, path_, "socket-retry", [this, make, path = path_]() -> EventLoop::Task {
        // Shared, since a task must be copyable and a socket is not.
        auto listener = std::make_shared<Listener>(make(path));
        return [this, listener] { Take(std::move(*listener)); };
      }) {
  if (path_.empty()) return;
  first == FirstTry::kHere ? Take(make(path_)) : attempts_.Try();
}

void OptionalListener::Take(Listener listener) {
  Logger& log = GetLogger("admin");
  if (!listener.ok()) {
    if (attempts_.Failed(listener.status()))
      log.Warn("cannot serve {}, retrying: {}", path_, Message(listener.status()));
    return;
  }
  attempts_.Succeeded();
  serve_(*std::move(listener));
  if (attempts_.ever_failed()) log.Info("{} is served now", path_);
}

OptionalSocket::OptionalSocket(EventLoop& loop, h2::FlushQueue& flushes, std::string path,
                               UnaryServer::Methods methods, OptionalListener::Make make,
                               OptionalListener::FirstTry first, UnaryServer::Streams streams)
    : listener_(
          loop, std::move(path),
          [this, &loop, &flushes, methods = std::move(methods),
           streams = std::move(streams)](ListeningSocket listener) {
            server_ =
                std::make_unique<UnaryServer>(loop, flushes, std::move(listener), methods, streams);
          },
          std::move(make), first) {}

OptionalMetrics::OptionalMetrics(EventLoop& loop, std::string address, ServedMetrics served)
    : attempts_(loop, address, "metrics-retry", [this, address, served]() -> EventLoop::Task {
        // Shared, since a task must be copyable and a server is not.
        auto server = std::make_shared<Server>(MetricsServer::Create(address, served));
        return [this, server] { Take(std::move(*server)); };
      }) {
  if (address.empty()) return;
  // Without an answer of DNS, the front door would not be served for many seconds.
  NeedsLookUp(address) ? attempts_.Try() : Take(MetricsServer::Create(address, std::move(served)));
}

void OptionalMetrics::Take(Server server) {
  Logger& log = GetLogger("cri-resmgr");
  if (!server.ok()) {
    if (attempts_.Failed(server.status())) log.Warn("{}; retrying", Message(server.status()));
    return;
  }
  attempts_.Succeeded();
  server_ = *std::move(server);
  log.Info("metrics are served on port {}", server_->port());
}

}  // namespace resmgr
