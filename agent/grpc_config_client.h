// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <string>

#include "agent/config_client.h"
#include "pkg/sys/event_loop.h"

namespace resmgr::agent {

// v1.Config of the daemon, over its unix socket. After a verdict it checks at intervals that the
// connection still exists, and asks for the daemon's health: any answer, also UNIMPLEMENTED, shows
// that it lives. HTTP/2 keep-alive would not do: gRPC's servers close idle connections that use it.
// Calls are begun on the loop; a thread waits for their ends.
class GrpcConfigClient : public ConfigClient {
 public:
  struct Options {
    std::string socket{};
    std::string node{};
    // The daemon may have to move every container of the node before it answers.
    std::chrono::milliseconds timeout{60'000};
    std::chrono::milliseconds look_interval{500};
    std::chrono::milliseconds probe_interval{1000};
    // How long an answer to a probe may take before the daemon counts as silent.
    std::chrono::milliseconds silence{2000};
  };

  // Must be destroyed on the loop's thread, or after the loop.
  GrpcConfigClient(EventLoop& loop, Options options);
  ~GrpcConfigClient() override;

  void SetCallbacks(Callbacks callbacks) override;
  // Waits while the daemon is silent, so that deliveries do not pile up at a daemon that hangs.
  void SetConfig(const std::map<std::string, std::string>& config, Done done) override;

 private:
  class Impl;
  const std::unique_ptr<Impl> impl_;
};

}  // namespace resmgr::agent
