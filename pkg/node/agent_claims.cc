// SPDX-License-Identifier: Apache-2.0
#include "pkg/node/agent_claims.h"

#include <utility>

#include "pkg/api/node_claims.pb.h"
#include "pkg/base/parse.h"

namespace resmgr {

AgentClaims::AgentClaims(EventLoop& loop, h2::FlushQueue& flushes, std::string socket,
                         std::chrono::milliseconds timeout)
    : loop_(loop), flushes_(flushes), socket_(std::move(socket)), timeout_(timeout) {}

void AgentClaims::Get(const dra::ClaimName& claim, const Done& done) {
  if (socket_.empty())
    return done(FailedPrecondition("no agent is to be asked for claims: -agent-socket"));
  if (asked_.size() < kMostAtOnce) return Ask({claim, done});
  if (waiting_.size() >= kMostWaiting)
    return done(ResourceExhausted("{} claims wait for the agent already", waiting_.size()));
  waiting_.push_back({claim, done});
}

void AgentClaims::Ask(const Question& question) {
  if (client_ == nullptr) {
    auto client =
        std::make_unique<UnaryClient>(loop_, flushes_, socket_, dra::kLongestClaimObject + 1024);
    const Status connected = client->Connect([this, number = ++clients_](const Status& why) {
      if (number == clients_) Lose(why);
    });
    if (!connected.ok()) return Unreachable(connected, question.done);
    client_ = std::move(client);
  }
  cri_resmgr::v1::GetClaimRequest request;
  request.set_claim_namespace(question.claim.namespace_name);
  request.set_claim(question.claim.name);
  const uint64_t id = ++last_id_;
  asked_[id] = question.done;
  client_->Call("/cri_resmgr.v1.NodeClaims/GetClaim", request.SerializeAsString(), timeout_,
                [this, id](const StatusOr<std::string>& reply) { Replied(id, reply); });
}

void AgentClaims::Replied(uint64_t id, const StatusOr<std::string>& reply) {
  if (!asked_.contains(id)) return;  // its connection was given up, so it was answered already
  // If the connection was lost, all its questions are answered together elsewhere.
  const bool lost = reply.status().code() == StatusCode::kUnavailable && !client_->connected();
  if (lost) return;
  if (reply.status().code() == StatusCode::kDeadlineExceeded) return Lose(reply.status());
  const Done done = std::move(asked_.extract(id).mapped());
  away_ = OkStatus();
  Answer(reply, done);
  AskNext();
}

void AgentClaims::Answer(const StatusOr<std::string>& reply, const Done& done) const {
  if (reply.status().code() == StatusCode::kUnimplemented)
    return done(Unimplemented("the agent at {} is too old to read claims", socket_));
  if (!reply.ok()) return done(Annotate(reply.status(), "reading the ResourceClaim"));
  cri_resmgr::v1::GetClaimReply answer;
  if (!answer.ParseFromString(*reply)) return done(Unavailable("the agent's answer is malformed"));
  done(answer.claim());
}

void AgentClaims::Lose(const Status& why) {
  ++clients_;
  if (client_ != nullptr) lost_.Add(std::move(client_));
  for (const auto& [id, done] : std::exchange(asked_, {}))
    Unreachable(why, done);
  AskNext();
}

void AgentClaims::AskNext() {
  while (asked_.size() < kMostAtOnce && !waiting_.empty()) {
    const Question next = std::move(waiting_.front());
    waiting_.pop_front();
    Ask(next);
  }
}

void AgentClaims::Unreachable(const Status& why, const Done& done) {
  if (away_.ok()) away_since_ = std::chrono::system_clock::now();
  away_ = why;
  done(Unavailable("the agent is not reachable: {}", Message(why)));
}

std::optional<Problem> AgentClaims::problem() const {
  if (away_.ok()) return std::nullopt;
  return Problem{.kind = "socket",
                 .since = away_since_,
                 .message = fmt::format("claims are not prepared: the agent at {} is not "
                                        "reachable: {}",
                                        socket_, Printable(Message(away_))),
                 .objects = {socket_},
                 .next = "start cri-resmgr-agent"};
}

}  // namespace resmgr
