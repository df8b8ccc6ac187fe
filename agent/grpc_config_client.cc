// SPDX-License-Identifier: Apache-2.0
#include "agent/grpc_config_client.h"

#include <utility>

#include "pkg/api/config.pb.h"

namespace resmgr::agent {
namespace {

// gRPC's health checking protocol: a cheap call, which any daemon answers, if only with
// UNIMPLEMENTED.
constexpr std::string_view kHealthCheck = "/grpc.health.v1.Health/Check";
// Long, so that a daemon that hangs has one unanswered probe and not one for each interval.
constexpr std::chrono::hours kProbeTimeout{1};
// Bytes; the daemon's answer is one text.
constexpr size_t kMaxReply = size_t{4} << 20;

}  // namespace

GrpcConfigClient::GrpcConfigClient(EventLoop& loop, h2::FlushQueue& flushes, Options options)
    : loop_(loop), flushes_(flushes), options_(std::move(options)) {}

void GrpcConfigClient::SetConfig(const std::map<std::string, std::string>& config, Done done) {
  v1::SetConfigRequest request;
  request.set_node_name(options_.node);
  request.mutable_config()->insert(config.begin(), config.end());
  done_ = std::move(done);
  if (silent_) {
    waiting_ = request.SerializeAsString();
  } else {
    Deliver(request.SerializeAsString());
  }
}

bool GrpcConfigClient::TakeBack() {
  if (!waiting_) return false;
  waiting_.reset();
  done_ = nullptr;
  return true;
}

Status GrpcConfigClient::Connect() {
  if (client_ != nullptr && client_->connected()) return OkStatus();
  probing_ = false;
  client_ = std::make_unique<UnaryClient>(loop_, flushes_, options_.socket, kMaxReply);
  return client_->Connect([this](const Status& /*reason*/) { Lose(); });
}

void GrpcConfigClient::Deliver(const std::string& request) {
  timer_.reset();
  delivering_ = true;
  if (const Status status = Connect(); !status.ok()) {
    loop_.Post(lifetime_.Guard([this, status] { Delivered(status); }));
    return;
  }
  client_->Call("/v1.Config/SetConfig", request, options_.timeout,
                [this](const StatusOr<std::string>& reply) { Delivered(reply); });
}

void GrpcConfigClient::Delivered(const StatusOr<std::string>& reply) {
  delivering_ = false;
  StatusOr<std::string> verdict = std::string();
  v1::SetConfigReply message;
  if (!reply.ok()) {
    verdict = Annotate(reply.status(), "cri-resmgr");
  } else if (message.ParseFromString(*reply)) {
    verdict = message.error();
  } else {
    verdict = Internal("cri-resmgr: its answer is not a v1.SetConfigReply");
  }
  switch (verdict.status().code()) {
    case StatusCode::kUnavailable:
      client_.reset();  // the next try gets a new connection
      break;
    case StatusCode::kDeadlineExceeded:
      silent_ = true;  // until it has answered a probe
      Probe();
      break;
    default:
      Heard();
  }
  std::exchange(done_, nullptr)(verdict);
}

void GrpcConfigClient::Heard() {
  heard_ = loop_.Now();
  timer_ = loop_.After(options_.probe_interval, [this] { Probe(); });
}

void GrpcConfigClient::Probe() {
  timer_.reset();
  if (!silent_) {
    timer_ = loop_.After(options_.silence, [this] {
      silent_ = true;
      callbacks_.silent(
          std::chrono::duration_cast<std::chrono::milliseconds>(loop_.Now() - heard_));
    });
  }
  if (std::exchange(probing_, true)) return;
  client_->Call(kHealthCheck, "", kProbeTimeout,
                [this](const StatusOr<std::string>& reply) { Probed(reply.status()); });
}

void GrpcConfigClient::Probed(const Status& status) {
  probing_ = false;
  // A delivery under way reports its own result, and Lose reports the end of a connection.
  if (delivering_ || !client_->connected()) return;
  if (status.code() == StatusCode::kUnavailable) return Lose();
  if (status.code() == StatusCode::kDeadlineExceeded) {
    timer_ = loop_.After(options_.probe_interval, [this] { Probe(); });
    return;
  }
  Heard();
  const bool was_silent = std::exchange(silent_, false);
  if (waiting_) return Deliver(*std::exchange(waiting_, std::nullopt));
  if (was_silent) callbacks_.answers();
}

void GrpcConfigClient::Lose() {
  if (delivering_) return;
  client_.reset();
  timer_.reset();
  silent_ = false;
  if (waiting_) return Deliver(*std::exchange(waiting_, std::nullopt));
  callbacks_.lost();
}

}  // namespace resmgr::agent
