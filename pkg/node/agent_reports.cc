// SPDX-License-Identifier: Apache-2.0
#include "pkg/node/agent_reports.h"

#include <algorithm>
#include <utility>

#include "pkg/api/node_reports.pb.h"
#include "pkg/base/parse.h"

namespace resmgr {
namespace {

// The agent does not want this, however often it is asked.
bool IsFinal(const Status& status) {
  switch (status.code()) {
    case StatusCode::kFailedPrecondition:
    case StatusCode::kInvalidArgument:
    case StatusCode::kPermissionDenied:
    case StatusCode::kUnimplemented:
      return true;
    default:
      return false;
  }
}

}  // namespace

AgentReports::AgentReports(EventLoop& loop, h2::FlushQueue& flushes, std::string socket,
                           Options options)
    : loop_(loop),
      flushes_(flushes),
      log_(GetLogger("node")),
      socket_(std::move(socket)),
      options_(options),
      pause_(options.first_pause) {}

void AgentReports::ShowCpus(std::string cpus) {
  cpus_ = std::move(cpus);
  if (timer_ == nullptr) Try();
}

void AgentReports::Try() {
  timer_.reset();
  if (calling_ || !Pending()) return;
  if (const Status connected = Connect(); !connected.ok()) return TryLater(connected);
  SendCpus();
}

Status AgentReports::Connect() {
  if (client_ != nullptr) return OkStatus();
  client_ = std::make_unique<UnaryClient>(loop_, flushes_, socket_);
  return client_->Connect([this](const Status& reason) { TryLater(reason); });
}

void AgentReports::SendCpus() {
  calling_ = true;
  cri_resmgr::v1::ShowCpusRequest request;
  request.set_cpus(*cpus_);
  client_->Call(
      "/cri_resmgr.v1.NodeReports/ShowCpus", request.SerializeAsString(), options_.timeout,
      [this, cpus = *cpus_](const StatusOr<std::string>& reply) { OnShown(cpus, reply.status()); });
}

void AgentReports::OnShown(const std::string& cpus, const Status& status) {
  if (!status.ok() && !IsFinal(status)) return TryLater(status);
  calling_ = false;
  if (status.ok()) {
    complained_ = false;
  } else if (!std::exchange(refusal_told_, true)) {
    log_.Warn("the node does not show which CPUs are allocated: the agent refuses: {}",
              Printable(Message(status)));
  }
  pause_ = options_.first_pause;
  settled_ = cpus;
  Try();
}

void AgentReports::TryLater(const Status& why) {
  if (!std::exchange(complained_, true)) {
    log_.Info("reports about this node wait for the agent at {}: {}", socket_,
              Printable(Message(why)));
  }
  client_.reset();
  settled_.reset();
  calling_ = false;
  timer_ = loop_.After(pause_, [this] { Try(); });
  pause_ = std::min(pause_ * 2, options_.longest_pause);
}

}  // namespace resmgr
