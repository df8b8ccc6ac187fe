// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "pkg/docker/engine_client.h"
#include "pkg/docker/engine_inventory.h"
#include "pkg/log/log.h"
#include "pkg/resmgr/runtime_client.h"
#include "pkg/sys/backoff.h"
#include "pkg/sys/event_loop.h"

namespace resmgr::docker {

// dockerd as a resource manager sees it: pods and containers from its lists and inspections, its
// events, updates. The connection on which events come is open while dockerd is there, so that its
// start and end are noticed at once. Loop's thread only.
class EngineRuntime final : public RuntimeClient {
 public:
  struct Events {
    std::function<void()> connected;
    std::function<void()> disconnected;
    std::function<void(const ContainerEvent&)> happened;
  };

  EngineRuntime(EventLoop& loop, const std::string& socket, Others others);

  // Connects now or as soon as dockerd appears, and again after each loss.
  void Start(Events events);
  // Does not wait for the next try. Unavailable names the socket.
  Status EnsureConnected();

  void UpdateContainer(const ContainerId& id, const ResourceValues& values,
                       std::function<void(Status)> done) override;
  void ListAll(Known known, std::function<void(StatusOr<RuntimeInventory>)> done) override;
  bool WritesNotedValues() const override { return false; }
  bool StartsExited() const override { return true; }
  // Those of pods keep theirs.
  bool Renames() const override { return others_ == Others::kShare; }

 private:
  class Listing;

  void Update(const ContainerId& id, std::string body, std::function<void(Status)> done);
  Status TryConnect();
  void OnEventBytes(std::string_view bytes);
  void OnLost(const Status& why);
  void BeStableSoon();
  // One of those that dockerd has not told of yet, which it counts as told.
  bool IsOwnUpdate(const std::string& id);

  EventLoop& loop_;
  const std::string socket_;
  const Others others_;
  Logger& log_;
  EngineClient client_;
  Events events_;
  std::string line_;  // of the events, as far as it came
  EventLoop::HandlePtr retry_;
  Backoff pauses_;
  bool complained_ = false;  // since the last stream that lived for a while
  EventLoop::HandlePtr stable_;
  // Our own updates of which the stream has not told yet, by container.
  std::map<std::string, size_t> own_updates_;
  std::unique_ptr<EngineRequest> stream_;  // while it is connected; gone first
};

}  // namespace resmgr::docker
