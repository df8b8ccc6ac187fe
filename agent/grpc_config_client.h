// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "agent/config_pusher.h"
#include "pkg/grpc/unary_client.h"
#include "pkg/h2/flush_queue.h"
#include "pkg/sys/event_loop.h"
#include "pkg/sys/lifetime.h"

namespace resmgr::agent {

// A client of the daemon's v1.Config over its unix socket. After a verdict the client keeps the
// connection, whose end is the end of that daemon, and asks for the daemon's health at intervals:
// any answer, also UNIMPLEMENTED, shows that the daemon lives. Loop's thread only.
class GrpcConfigClient : public ConfigClient {
 public:
  struct Options {
    std::string socket{};
    std::string node{};
    // The daemon may have to move every container of the node before it answers.
    std::chrono::milliseconds timeout{60'000};
    std::chrono::milliseconds probe_interval{1000};
    // How long an answer to a probe may take before the daemon counts as silent.
    std::chrono::milliseconds silence{2000};
  };

  GrpcConfigClient(EventLoop& loop, h2::FlushQueue& flushes, Options options);

  void SetCallbacks(Callbacks callbacks) override { callbacks_ = std::move(callbacks); }
  // Waits while the daemon is silent, so that deliveries do not pile up at a daemon that hangs.
  void SetConfig(const std::map<std::string, std::string>& config, Done done) override;
  bool TakeBack() override;

 private:
  Status Connect();
  void Deliver(const std::string& request);
  void Delivered(const StatusOr<std::string>& reply);
  void Heard();
  void Probe();
  void Probed(const Status& status);
  void Lose();

  EventLoop& loop_;
  h2::FlushQueue& flushes_;
  const Options options_;
  Callbacks callbacks_;
  Done done_;
  bool delivering_ = false;
  std::optional<std::string> waiting_;  // the request that is held back for a silent daemon
  bool probing_ = false;
  bool silent_ = false;
  EventLoop::Clock::time_point heard_;  // when the daemon answered last
  // From an answer to the next probe, then from the probe until the daemon counts as silent.
  EventLoop::HandlePtr timer_;
  Lifetime lifetime_;
  std::unique_ptr<UnaryClient> client_;  // one for each connection
};

}  // namespace resmgr::agent
