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

// The stages' questions to one CRI runtime, on connections of their own, so that a list or a hung
// shim delays no update of the resource manager. It connects with the first call, and with the next
// one after a loss: connecting to a unix socket succeeds or fails at once. Speaks runtime.v1, or
// v1alpha2 with older runtimes. Loop's thread only.
class RuntimeInspector final : public RuntimeAccess {
 public:
  // A call without an answer in this time fails with kDeadlineExceeded.
  static constexpr std::chrono::seconds kCallTimeout{10};

  // The socket for images is often the same one. `aliases`: see RuntimeConnection.
  RuntimeInspector(EventLoop& loop, h2::FlushQueue& flushes, const std::string& runtime_socket,
                   const std::string& image_socket, const HandlerAliases* aliases = nullptr);

  void AskVersion(Done<Version> done) override;
  void InspectSandbox(const PodSandboxId& id, Done<SandboxFacts> done) override;
  void InspectContainer(const ContainerId& id, Done<ContainerFacts> done) override;
  void InspectImage(std::string_view reference, Done<ImageFacts> done) override;
  // An object whose verbose status is missing for another reason than its end has its listed facts
  // only.
  void InspectAll(Done<Everything> done) override;

  void UpdateContainer(const ContainerId& id, const ResourceChange& change,
                       std::function<void(Status)> done) override;
  // The runtime has `grace` in addition to kCallTimeout.
  void StopContainer(const ContainerId& id, std::chrono::seconds grace,
                     std::function<void(Status)> done) override;
  void StopSandbox(const PodSandboxId& id, std::function<void(Status)> done) override;
  void RemoveSandbox(const PodSandboxId& id, std::function<void(Status)> done) override;

 private:
  class Inspection;

  // One socket: a connection, and the API version used on it.
  class Peer {
   public:
    Peer(EventLoop& loop, h2::FlushQueue& flushes, const std::string& socket);
    // `method` has the form "RuntimeService/Version".
    void Call(std::string_view method, const std::string& message,
              std::chrono::milliseconds timeout, UnaryClient::Done done);

   private:
    UnaryClient client_;
    bool old_version_ = false;  // the runtime speaks v1alpha2
  };

  void Call(std::string_view method, const std::string& message, UnaryClient::Done done);

  const HandlerAliases* const aliases_;
  Peer runtime_;
  Peer images_;
};

}  // namespace resmgr
