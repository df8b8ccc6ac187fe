// SPDX-License-Identifier: Apache-2.0
#include "pkg/node/optional_services.h"

#include <utility>

#include "pkg/log/log.h"

namespace resmgr {
namespace {

// How long the daemon's end waits for an attempt that is under way.
constexpr std::chrono::milliseconds kRetryPatience{100};

void Fail(const Status& why, std::optional<Unserved>& unserved) {
  if (!unserved) unserved = Unserved{.since = std::chrono::system_clock::now()};
  unserved->why = why;
}

}  // namespace

Problem Unserved::ProblemOf(const std::string& place) const {
  return {.kind = "socket",
          .since = since,
          .message = fmt::format("{} is not served, and is tried again: {}", place, Message(why)),
          .objects = {place},
          .next = "ss -lxtp, which names the process that has it"};
}

OptionalListener::OptionalListener(EventLoop& loop, std::string path, Serve serve, Make make,
                                   FirstTry first)
    : loop_(loop),
      path_(std::move(path)),
      serve_(std::move(serve)),
      make_(std::move(make)),
      off_loop_(loop, "socket-retry", kRetryPatience) {
  if (path_.empty()) return;
  first == FirstTry::kHere ? Take(make_(path_)) : TryAgain();
}

void OptionalListener::Take(Listener listener) {
  Logger& log = GetLogger("admin");
  if (listener.ok()) {
    unserved_.reset();
    serve_(*std::move(listener));
    if (warned_) log.Info("{} is served now", path_);
    return;
  }
  if (!std::exchange(warned_, true)) {
    log.Warn("cannot serve {}, retrying: {}", path_, Message(listener.status()));
  }
  Fail(listener.status(), unserved_);
  retry_ = loop_.After(pauses_.Next(), [this] { TryAgain(); });
}

std::optional<Problem> OptionalListener::problem() const {
  return unserved_ ? std::optional(unserved_->ProblemOf(path_)) : std::nullopt;
}

void OptionalListener::TryAgain() {
  const Status begun = off_loop_.Run([this, make = make_, path = path_]() -> EventLoop::Task {
    // Shared, since a task must be copyable and a socket is not.
    auto listener = std::make_shared<Listener>(make(path));
    return [this, listener] { Take(std::move(*listener)); };
  });
  if (!begun.ok()) retry_ = loop_.After(pauses_.Next(), [this] { TryAgain(); });
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
    : loop_(loop),
      address_(std::move(address)),
      served_(std::move(served)),
      off_loop_(loop, "metrics-retry", kRetryPatience) {
  if (address_.empty()) return;
  // Without an answer of DNS, the front door would not be served for many seconds.
  NeedsLookUp(address_) ? TryAgain() : Take(MetricsServer::Create(address_, served_));
}

void OptionalMetrics::Take(Server server) {
  Logger& log = GetLogger("cri-resmgr");
  if (server.ok()) {
    unserved_.reset();
    server_ = *std::move(server);
    log.Info("metrics are served on port {}", server_->port());
    return;
  }
  if (!std::exchange(warned_, true)) log.Warn("{}; retrying", Message(server.status()));
  Fail(server.status(), unserved_);
  retry_ = loop_.After(pauses_.Next(), [this] { TryAgain(); });
}

std::optional<Problem> OptionalMetrics::problem() const {
  return unserved_ ? std::optional(unserved_->ProblemOf(address_)) : std::nullopt;
}

void OptionalMetrics::TryAgain() {
  const Status begun =
      off_loop_.Run([this, address = address_, served = served_]() -> EventLoop::Task {
        // Shared, since a task must be copyable and a server is not.
        auto server = std::make_shared<Server>(MetricsServer::Create(address, served));
        return [this, server] { Take(std::move(*server)); };
      });
  if (!begun.ok()) retry_ = loop_.After(pauses_.Next(), [this] { TryAgain(); });
}

}  // namespace resmgr
