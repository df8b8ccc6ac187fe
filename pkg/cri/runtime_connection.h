// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "pkg/cri/event_stream.h"
#include "pkg/grpc/unary_client.h"
#include "pkg/log/log.h"
#include "pkg/pipeline/runtime_access.h"
#include "pkg/resmgr/runtime_client.h"
#include "pkg/runtime/runtime_listing.h"
#include "pkg/sys/event_loop.h"
#include "pkg/sys/lifetime.h"

namespace resmgr {

class HandlerAliases;

// The daemon's own calls to one CRI runtime. The resource manager and the stages have a connection
// each, so that a list or a hung shim delays no update of the resource manager. Speaks runtime.v1,
// or v1alpha2 with older runtimes. Loop's thread only.
//
// After Start the connection is always open while the runtime runs, so that its start and end are
// noticed at once; a runtime that hangs up at once is tried again after a pause. Without Start it
// is opened for a call, and again for the next call after a loss: connecting to a unix socket
// succeeds or fails at once.
class RuntimeConnection final : public RuntimeClient, public RuntimeAccess {
 public:
  // A call without an answer in this time fails with kDeadlineExceeded.
  static constexpr std::chrono::seconds kCallTimeout{10};

  struct Events {
    std::function<void()> connected;
    std::function<void()> disconnected;
    // Called with container events, if the runtime sends them.
    std::function<void(const ContainerEvent&)> happened{};
    // Called when ListAll begins to ask for the status of everything, for the first time on this
    // connection or after a failure. If it returns a function, that gets the result before the
    // caller of ListAll does, unless it is dropped.
    std::function<Done<Everything>()> listing{};
  };

  // `image_socket`: "" if the runtime's socket serves images. `aliases` of the runtime's handlers
  // outlive this object: pods get the named alias. nullptr: there are none.
  RuntimeConnection(EventLoop& loop, h2::FlushQueue& flushes, const std::string& runtime_socket,
                    const std::string& image_socket = {}, const HandlerAliases* aliases = nullptr);

  // Connects now or as soon as the runtime appears, and again after each loss.
  void Start(Events events);
  // After Start: tries to connect now, for a call that needs the runtime. kUnavailable: there is no
  // connection; the message names the socket.
  Status EnsureConnected();
  // Whether a client listens to the runtime's events itself, so that they are not requested here.
  void LeaveEventsToClient(bool leaves) { event_stream_.SetClientListens(leaves); }

  void UpdateContainer(const ContainerId& id, const ResourceValues& adjustment,
                       std::function<void(Status)> done) override;
  // An object that disappeared after the list is reported as listed: the resource manager learns
  // its end anyway.
  void ListAll(Known known, std::function<void(StatusOr<RuntimeInventory>)> done) override;

  void AskVersion(Done<Version> done) override;
  void InspectSandbox(const PodSandboxId& id, Done<SandboxFacts> done) override;
  void InspectContainer(const ContainerId& id, Done<ContainerFacts> done) override;
  void InspectImage(const PodSandboxId& pod, std::string_view reference,
                    Done<ImageFacts> done) override;
  // Objects that end meanwhile are left out. An object whose verbose status fails otherwise has
  // only its listed facts.
  void InspectAll(Done<Everything> done) override;
  void UpdateContainer(const ContainerId& id, const ResourceChange& change,
                       std::function<void(Status)> done) override;
  // The runtime has `grace` in addition to kCallTimeout.
  void StopContainer(const ContainerId& id, std::chrono::seconds grace,
                     std::function<void(Status)> done) override;
  void StopSandbox(const PodSandboxId& id, std::function<void(Status)> done) override;
  void RemoveSandbox(const PodSandboxId& id, std::function<void(Status)> done) override;

 private:
  // One socket, and the API version used on it.
  class Peer {
   public:
    Peer(EventLoop& loop, h2::FlushQueue& flushes, const std::string& socket)
        : client_(loop, flushes, socket) {}
    Status Connect(std::function<void(const Status&)> on_loss);
    // `method` has the form "RuntimeService/Version".
    void Call(std::string_view method, std::string_view message, std::chrono::milliseconds timeout,
              UnaryClient::Done done);
    UnaryClient& client() { return client_; }
    uint64_t connects() const { return connects_; }

   private:
    enum class Api { kUnknown, kV1, kV1Alpha2 };

    UnaryClient client_;
    uint64_t connects_ = 0;
    Api api_ = Api::kUnknown;  // on this connection
  };

  Status TryConnect();
  void TryLater();
  void OnLost(const Status& reason);
  // Calls RuntimeService. If Start was not called and there is no connection, makes one.
  void Call(std::string_view method, std::string_view message, UnaryClient::Done done,
            std::chrono::milliseconds timeout = kCallTimeout);
  void List(Known known, Done<RuntimeListing::Result> done);

  EventLoop& loop_;
  Logger& log_;
  const std::string socket_;
  const HandlerAliases* const aliases_;
  Peer runtime_;
  Peer images_;
  Events events_;
  EventStream event_stream_;
  EventLoop::HandlePtr retry_;
  bool started_ = false;
  bool up_ = false;  // the last state that the events reported
  EventLoop::Clock::time_point connected_at_;
  bool hangs_up_ = false;  // the last connection was lost at once
  uint64_t shared_ = 0;    // number of the last connection whose complete list Events::listing got
  bool complained_ = false;
  Lifetime lifetime_;
};

}  // namespace resmgr
