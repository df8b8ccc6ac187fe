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

// dockerd as the resource manager's runtime: lists and inspections, events, updates. The connection
// for events is open while dockerd runs, so that its start and end are noticed at once. Loop's
// thread only.
class EngineRuntime final : public RuntimeClient {
 public:
  struct Events {
    std::function<void()> connected = [] {};
    std::function<void()> disconnected = [] {};
    std::function<void(const ContainerEvent&)> happened = [](const ContainerEvent&) {};
  };

  EngineRuntime(EventLoop& loop, const std::string& socket, Others others);

  // Connects now or as soon as dockerd appears, and again after each loss.
  void Start(Events events);
  // Tries to connect at once if not connected. kUnavailable names the socket.
  Status EnsureConnected();

  void UpdateContainer(const ContainerId& id, const ResourceValues& values,
                       std::function<void(Status)> done) override;
  void ListAll(Known known, std::function<void(StatusOr<RuntimeInventory>)> done) override;
  bool WritesNotedValues() const override { return false; }
  bool StartsExited() const override { return true; }
  // Only containers outside pods can be renamed.
  bool Renames() const override { return others_ == Others::kShare; }

 private:
  void Update(const ContainerId& id, std::string_view body, std::function<void(Status)> done);
  Status TryConnect();
  void OnEventBytes(std::string_view bytes);
  void OnLost(const Status& why);
  void BeStableSoon();
  // Whether the event reports an update of our own. If so, that update counts as reported.
  bool IsOwnUpdate(const std::string& id);

  EventLoop& loop_;
  const std::string socket_;
  const Others others_;
  Logger& log_;
  EngineClient list_client_;  // for ListAll, whose inspections may hang with containers
  EngineClient client_;       // for updates, which must not wait for these
  Events events_;
  std::string line_;  // the incomplete last line of the events
  EventLoop::HandlePtr retry_;
  Backoff pauses_;
  bool complained_ = false;  // a failure was logged since the last stream that lived for a while
  EventLoop::HandlePtr stable_;
  // Number of our own updates that the stream has not reported yet, by container.
  std::map<std::string, size_t> own_updates_;
  std::unique_ptr<EngineRequest> stream_;  // set while connected; destroyed first
};

}  // namespace resmgr::docker
