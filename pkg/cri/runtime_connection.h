// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "pkg/cri/event_stream.h"
#include "pkg/grpc/unary_client.h"
#include "pkg/log/log.h"
#include "pkg/resmgr/runtime_client.h"
#include "pkg/sys/event_loop.h"

namespace resmgr {

class HandlerAliases;

// The resource manager's own connection to a runtime (CRI RuntimeService): always open while the
// runtime runs, so that its start and end are noticed at once. Speaks runtime.v1, or v1alpha2 with
// older runtimes.
class RuntimeConnection final : public RuntimeClient {
 public:
  struct Events {
    std::function<void()> connected;
    std::function<void()> disconnected;
    // Called with events, if the runtime sends them.
    std::function<void(const ContainerEvent&)> happened{};
  };

  // `aliases` of the runtime's handlers, which outlive this object: pods get the named alias.
  // nullptr: there are none.
  RuntimeConnection(EventLoop& loop, h2::FlushQueue& flushes, const std::string& socket_path,
                    const HandlerAliases* aliases = nullptr);
  ~RuntimeConnection() override;

  // Connects now or as soon as the runtime appears, and again after each loss.
  void Start(Events events);

  // Tries to connect now, for a call that needs the runtime. kUnavailable names the socket.
  Status EnsureConnected();

  void UpdateContainer(const ContainerId& id, const ResourceValues& adjustment,
                       std::function<void(Status)> done) override;
  void ListAll(Known known, std::function<void(StatusOr<RuntimeInventory>)> done) override;

  // Whether a client listens to the runtime's events itself, so that they are not requested here.
  void LeaveEventsToClient(bool leaves) { event_stream_.SetClientListens(leaves); }

 private:
  class Listing;

  Status TryConnect();
  void OnLost(const Status& reason);
  // Calls "/runtime.v1.RuntimeService/Method" in the runtime's version of the API.
  void Call(std::string_view method, std::string_view message, UnaryClient::Done done);

  EventLoop& loop_;
  Logger& log_;
  const std::string socket_;
  const HandlerAliases* const aliases_;
  UnaryClient client_;
  Events events_;
  EventStream event_stream_;
  EventLoop::HandlePtr retry_;
  bool old_version_ = false;  // the runtime speaks v1alpha2
  bool up_ = false;           // the last state that the events reported
  bool complained_ = false;
};

}  // namespace resmgr
