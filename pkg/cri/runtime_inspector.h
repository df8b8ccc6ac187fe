// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <string_view>

#include "pkg/grpc/unary_client.h"
#include "pkg/pipeline/runtime_access.h"
#include "pkg/sys/event_loop.h"

namespace resmgr {

class HandlerAliases;

// What stages may ask of one CRI runtime, by connections of their own: so a list or a hung shim
// that they wait for delays no update of the resource manager. It connects with the first call,
// and with the next one after a loss: connecting to a unix socket succeeds or fails at once.
// Speaks runtime.v1, or v1alpha2 to runtimes that know no other. Loop's thread only.
class RuntimeInspector final : public RuntimeAccess {
 public:
  // A call without an answer in this time is DeadlineExceeded.
  static constexpr std::chrono::seconds kCallTimeout{10};

  // The socket for images is often the other one.
  // `aliases` as of RuntimeConnection.
  RuntimeInspector(EventLoop& loop, h2::FlushQueue& flushes, const std::string& runtime_socket,
                   const std::string& image_socket, const HandlerAliases* aliases = nullptr);

  void AskVersion(Done<Version> done) override;
  void InspectSandbox(const PodSandboxId& id, Done<SandboxFacts> done) override;
  void InspectContainer(const ContainerId& id, Done<ContainerFacts> done) override;
  void InspectImage(std::string_view reference, Done<ImageFacts> done) override;
  // What has no verbose status for another reason than its end is told as it is listed.
  void InspectAll(Done<Everything> done) override;

  void UpdateContainer(const ContainerId& id, const ResourceChange& change,
                       std::function<void(Status)> done) override;
  // The runtime has `grace` besides kCallTimeout.
  void StopContainer(const ContainerId& id, std::chrono::seconds grace,
                     std::function<void(Status)> done) override;
  void StopSandbox(const PodSandboxId& id, std::function<void(Status)> done) override;
  void RemoveSandbox(const PodSandboxId& id, std::function<void(Status)> done) override;

 private:
  class Inspection;

  // One socket: a connection, and the version that is spoken on it.
  class Peer {
   public:
    Peer(EventLoop& loop, h2::FlushQueue& flushes, const std::string& socket);
    // `method` is "RuntimeService/Version".
    void Call(std::string_view method, const std::string& message,
              std::chrono::milliseconds timeout, UnaryClient::Done done);

   private:
    UnaryClient client_;
    bool old_version_ = false;  // v1alpha2
  };

  void Call(std::string_view method, const std::string& message, UnaryClient::Done done);

  const HandlerAliases* const aliases_;
  Peer runtime_;
  Peer images_;
};

}  // namespace resmgr
