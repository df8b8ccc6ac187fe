// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "agent/node_patch.h"
#include "pkg/base/status.h"
#include "pkg/sys/event_loop.h"

namespace resmgr::agent {

// What v1.Agent is asked for, on the loop's thread. Each callback is called once, then or later on
// the same thread, or never where this object ends before.
class AgentHandler {
 public:
  using TextDone = std::function<void(StatusOr<std::string> text)>;
  using Done = std::function<void(Status status)>;

  virtual ~AgentHandler() = default;
  virtual void GetNode(TextDone done) = 0;
  virtual void PatchNode(std::vector<PatchOperation> operations, Done done) = 0;
  virtual void UpdateNodeCapacity(std::map<std::string, std::string> capacities, Done done) = 0;
  // The text says what is not well, or nothing.
  virtual void HealthCheck(std::string query, TextDone done) = 0;
};

// Serves v1.Agent on a unix socket of mode 0660. gRPC's threads take the calls and wait there for
// the loop; a loop that does not answer is a kDeadlineExceeded to the caller.
class AgentServer {
 public:
  // On the loop's thread or before it runs; loop and handler must outlive this object. Errors as
  // of ListeningSocket::Create.
  static StatusOr<std::unique_ptr<AgentServer>> Create(EventLoop& loop, AgentHandler& handler,
                                                       std::string_view socket);
  // Answers what is waiting with kUnavailable.
  ~AgentServer();
  AgentServer(const AgentServer&) = delete;
  AgentServer& operator=(const AgentServer&) = delete;

 private:
  class Impl;
  explicit AgentServer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// Asks an agent's HealthCheck. OK: it is well. kFailedPrecondition: what is not, in its words.
// kUnavailable: nobody answers there.
Status ProbeAgent(std::string_view socket, std::string_view query,
                  std::chrono::milliseconds timeout);

}  // namespace resmgr::agent
