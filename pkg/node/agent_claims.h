// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "pkg/base/status.h"
#include "pkg/dra/claim_object.h"
#include "pkg/grpc/unary_client.h"
#include "pkg/h2/flush_queue.h"
#include "pkg/model/problem.h"
#include "pkg/sys/event_loop.h"
#include "pkg/sys/lifetime.h"

namespace resmgr {

// Reads ResourceClaims through the agent (cri_resmgr.v1.NodeClaims) over a connection of its own.
// Each question is asked once and at once, since the kubelet repeats its calls. Loop's thread only.
class AgentClaims {
 public:
  using Done = std::function<void(StatusOr<std::string> object)>;

  // Limit of questions under way, less than the agent accepts from one client; further ones wait.
  static constexpr size_t kMostAtOnce = 8;
  static constexpr size_t kMostWaiting = 1024;

  // An empty socket: there is no agent.
  AgentClaims(EventLoop& loop, h2::FlushQueue& flushes, std::string socket,
              std::chrono::milliseconds timeout = std::chrono::seconds(10));

  // Calls `done` with the object as JSON, possibly at once, but never after this object's end.
  void Get(const dra::ClaimName& claim, const Done& done);
  // The last attempt to ask the agent failed.
  std::optional<Problem> problem() const;

 private:
  struct Question {
    dra::ClaimName claim{};
    Done done{};
  };

  void Ask(const Question& question);
  void Replied(uint64_t id, const StatusOr<std::string>& reply);
  void Answer(const StatusOr<std::string>& reply, const Done& done) const;
  void Lose(const Status& why);
  void AskNext();
  void Unreachable(const Status& why, const Done& done);

  EventLoop& loop_;
  h2::FlushQueue& flushes_;
  const std::string socket_;
  const std::chrono::milliseconds timeout_;
  std::unique_ptr<UnaryClient> client_;
  DestroyLater<std::unique_ptr<UnaryClient>> lost_{loop_};
  uint64_t clients_ = 0;  // grows with each new or lost client, to ignore callbacks of former ones
  uint64_t last_id_ = 0;
  std::map<uint64_t, Done> asked_;  // by the number of the question, over this client
  std::deque<Question> waiting_;
  Status away_;  // why the agent could not be asked; OK: it could
  std::chrono::system_clock::time_point away_since_{};
};

}  // namespace resmgr
