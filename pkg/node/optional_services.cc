// SPDX-License-Identifier: Apache-2.0
#include "pkg/node/optional_services.h"

#include <algorithm>
#include <utility>

#include "pkg/log/log.h"

namespace resmgr {
namespace {

constexpr std::chrono::seconds kLongestPause{10};
// For a try that is under way when the daemon ends.
constexpr std::chrono::milliseconds kPatience{100};

}  // namespace

std::chrono::milliseconds TryPause::Next() {
  return std::exchange(next_, std::min<std::chrono::milliseconds>(2 * next_, kLongestPause));
}

OptionalSocket::OptionalSocket(EventLoop& loop, h2::FlushQueue& flushes, std::string path,
                               UnaryServer::Methods methods)
    : loop_(loop), flushes_(flushes), path_(std::move(path)), methods_(std::move(methods)) {
  if (!path_.empty()) Try();
}

void OptionalSocket::Try() {
  Logger& log = GetLogger("admin");
  auto server = UnaryServer::Create(loop_, flushes_, path_, methods_);
  if (server.ok()) {
    server_ = *std::move(server);
    if (warned_) log.Info("{} is served now", path_);
    return;
  }
  if (!std::exchange(warned_, true)) {
    log.Warn("cannot serve {}, it is tried again: {}", path_, Message(server.status()));
  }
  retry_ = loop_.After(pause_.Next(), [this] { Try(); });
}

OptionalMetrics::OptionalMetrics(EventLoop& loop, std::string address,
                                 std::shared_ptr<const Metrics> metrics)
    : loop_(loop),
      address_(std::move(address)),
      metrics_(std::move(metrics)),
      off_loop_(loop, "metrics-retry", kPatience) {
  if (!address_.empty()) Take(MetricsServer::Create(address_, *metrics_));
}

void OptionalMetrics::Take(Server server) {
  Logger& log = GetLogger("cri-resmgr");
  if (server.ok()) {
    server_ = *std::move(server);
    log.Info("metrics are served on port {}", server_->port());
    return;
  }
  if (!std::exchange(warned_, true)) log.Warn("{}; it is tried again", Message(server.status()));
  retry_ = loop_.After(pause_.Next(), [this] { TryAgain(); });
}

void OptionalMetrics::TryAgain() {
  const Status begun =
      off_loop_.Run([this, address = address_, metrics = metrics_]() -> EventLoop::Task {
        // A task can be copied, a server cannot.
        auto server = std::make_shared<Server>(MetricsServer::Create(address, *metrics));
        return [this, server] { Take(std::move(*server)); };
      });
  if (!begun.ok()) retry_ = loop_.After(pause_.Next(), [this] { TryAgain(); });
}

}  // namespace resmgr
