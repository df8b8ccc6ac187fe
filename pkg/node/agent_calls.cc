// SPDX-License-Identifier: Apache-2.0
#include "pkg/node/agent_calls.h"

#include "pkg/base/parse.h"

namespace resmgr {

AgentCalls::AgentCalls(EventLoop& loop, h2::FlushQueue& flushes, Options options)
    : loop_(loop),
      flushes_(flushes),
      log_(GetLogger("node")),
      options_(std::move(options)),
      pauses_(options_.times.first_pause, options_.times.longest_pause) {}

void AgentCalls::Begin() {
  timer_.reset();
  if (!calling_) options_.begin();
}

void AgentCalls::BeginSoon() {
  if (timer_ == nullptr) timer_ = loop_.After(std::chrono::milliseconds(0), [this] { Begin(); });
}

void AgentCalls::Call(std::string_view method, std::string_view message, UnaryClient::Done done) {
  calling_ = true;
  if (client_ == nullptr) {
    client_ = std::make_unique<UnaryClient>(loop_, flushes_, options_.socket);
    const Status connected = client_->Connect([this](const Status& reason) { Failed(reason); });
    if (!connected.ok()) return Failed(connected);
  }
  client_->Call(method, message, options_.times.timeout, std::move(done));
}

void AgentCalls::Done(bool well) {
  calling_ = false;
  if (well) complained_ = false;
  pauses_.Reset();
  Begin();
}

void AgentCalls::Failed(const Status& why) {
  if (!std::exchange(complained_, true))
    log_.Info("{}: {}", options_.complaint, Printable(Message(why)));
  client_.reset();
  calling_ = false;
  options_.lost();
  timer_ = loop_.After(pauses_.Next(), [this] { Begin(); });
}

}  // namespace resmgr
