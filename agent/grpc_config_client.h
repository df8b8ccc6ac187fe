// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <string>

#include "agent/config_client.h"
#include "pkg/sys/event_loop.h"

namespace resmgr::agent {

// v1.Config of the daemon, over its unix socket. One thread of its own makes the calls and looks
// now and then whether the connection of the last one is still there.
class GrpcConfigClient : public ConfigClient {
 public:
  struct Options {
    std::string socket{};
    std::string node{};
    // The daemon may have to move every container of the node before it answers.
    std::chrono::milliseconds timeout{60'000};
    std::chrono::milliseconds look_interval{500};
  };

  // To be ended on the loop's thread, or after the loop.
  GrpcConfigClient(EventLoop& loop, Options options);
  ~GrpcConfigClient() override;

  void SetLostCallback(Lost lost) override;
  void SetConfig(const std::map<std::string, std::string>& config, Done done) override;

 private:
  class Worker;
  struct Callbacks;

  std::shared_ptr<Callbacks> callbacks_;
  std::unique_ptr<Worker> worker_;
};

}  // namespace resmgr::agent
