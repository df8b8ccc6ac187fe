// SPDX-License-Identifier: Apache-2.0
// The part of ProxyConnection for intercepted requests and their replies.
#include <utility>

#include "pkg/docker/http_status.h"
#include "pkg/docker/proxy.h"
#include "pkg/docker/proxy_connection.h"

namespace resmgr::docker {
namespace {

// Stands for an interception if only the dumper wants the request's body: the request passes.
class PassingInterception final : public Interception {
 public:
  explicit PassingInterception(Client& client) : client_(client) {}

  void OnRequest(std::string_view) override { client_.Forward(std::nullopt); }
  void OnNotForwarded() override {}
  void OnReply(int, std::string_view) override { client_.PassReply(OkStatus()); }

 private:
  Client& client_;
};

}  // namespace

void ProxyConnection::Look(std::string_view head) {
  if (proxy_.interceptor() == nullptr) return;
  // Cannot fail: the exchange has read the head before.
  const RequestHead parsed = *ParseRequestHead(head);
  auto interception = proxy_.interceptor()->Begin(parsed.method, parsed.target, *this);
  if (CallWatch* const watch = proxy_.watch()) {
    call_ = watch->Begin(parsed.method, parsed.target, interception != nullptr);
    if (interception == nullptr && watch->WantsBodies(parsed.method, parsed.target)) {
      interception =
          std::make_unique<PassingInterception>(static_cast<Interception::Client&>(*this));
    }
    if (interception == nullptr && call_ != nullptr) call_->ShowTarget();
  }
  if (interception != nullptr) held_ = std::make_unique<HeldExchange>(std::move(interception));
}

void ProxyConnection::EndCall() {
  if (call_ == nullptr) return;
  if (exchange_.lasting()) call_->NoteLasting();
  if (exchange_.idle() || exchange_.reply_begun()) call_->End(exchange_.reply_status());
  call_.reset();
}

// `bytes` are the first ones that wait in `requests_`.
void ProxyConnection::Hold(std::string_view bytes) {
  const size_t size = bytes.size();
  const Status fits = held_->AddRequest(bytes);
  requests_.Allow(size);
  requests_.Left(size);
  held_bytes_ += size;
  const bool room = proxy_.Hold(size);
  if (!fits.ok()) {
    Refuse(413, fits);
  } else if (!room) {
    Refuse(503, ResourceExhausted("too many requests are held; try again"));
  } else if (exchange_.request_done()) {
    held_->Show();
  } else {
    own_reply_ += held_->Leave();
  }
}

// `bytes` are the first ones that wait in `replies_`.
void ProxyConnection::HoldReply(std::string_view bytes) {
  const bool fits = held_->AddReply(bytes);
  replies_.Allow(bytes.size());
  replies_.Left(bytes.size());
  if (!fits || exchange_.tunnel()) {
    Refuse(502, Internal("the reply of the Docker engine is too long to be held"));
  } else if (exchange_.idle()) {
    if (call_ != nullptr) call_->ShowReply(held_->ReplyBody());
    held_->ShowReply(exchange_.reply_status());
  }
}

bool ProxyConnection::PassEndsOfHeld() {
  if (held_ == nullptr) return true;
  using Phase = HeldExchange::Phase;
  const Phase phase = held_->phase();
  // The request is dropped if its end is missing, as dockerd does, or if no client waits for
  // the reply. A client that has only closed its own side waits for it.
  const bool dropped =
      phase == Phase::kCollecting || (phase == Phase::kDeciding && client_.IsGone());
  if (client_.ended && dropped) {
    Close();
    return false;
  }
  if (phase == Phase::kReplying) return false;
  if (phase != Phase::kForwarded) {
    // dockerd has closed the connection of earlier requests: Forward opens another one.
    if (engine_.ended) engine_ = {};
    return false;
  }
  if (!engine_.ended) {
    if (client_.ended && orphan_timer_ == nullptr) AwaitReplyForGone();
    return true;
  }
  const Status ended = exchange_.EngineEnds();
  if (!ended.ok()) {
    Refuse(502, Unavailable("the Docker engine has not answered: {}", Message(ended)));
    SendOwn();
    if (!closed_) PassEnds();
  } else {
    held_->ShowReply(exchange_.reply_status());
    if (!closed_ && held_ == nullptr) SendOwn();
    if (!closed_ && held_ == nullptr) PassEnds();
  }
  return false;
}

// Without this limit a hanging dockerd would keep the stages' reservations for the request.
void ProxyConnection::AwaitReplyForGone() {
  orphan_timer_ = loop_.After(proxy_.options().orphan_timeout,
                              [this] { client_.IsGone() ? Close() : AwaitReplyForGone(); });
}

void ProxyConnection::DropHeld() {
  if (held_ == nullptr) return;
  orphan_timer_.reset();
  proxy_.Release(std::exchange(held_bytes_, 0));
  proxy_.Discard(std::move(held_));
}

void ProxyConnection::Forward(std::optional<std::string> body) {
  if (closed_ || closing_ || held_ == nullptr) return;
  if (!engine_.fd.valid()) {
    if (const Status status = ConnectEngine(); !status.ok()) {
      held_->OnNotForwarded();
      Refuse(503, status);
      return StepIfIdle();
    }
  }
  if (call_ != nullptr) {
    call_->ShowRequest(held_->body());
    call_->ShowForwarded(held_->body(), body ? &*body : nullptr);
  }
  forwarded_ = held_->Request(body ? &*body : nullptr);
  held_->OnForwarded();
  StepIfIdle();
}

void ProxyConnection::Reject(const Status& why) {
  if (closed_ || closing_ || held_ == nullptr) return;
  if (call_ != nullptr) call_->ShowRequest(held_->body());
  Answer(StatusOfCode(why.code()), why, true);
  FinishSoon();
  StepIfIdle();
}

void ProxyConnection::PassReply(const Status& error) {
  if (closed_ || closing_ || held_ == nullptr) return;
  if (error.ok()) {
    own_reply_ += held_->TakeReply();
    EndCall();
    DropHeld();
    if (proxy_.draining()) FinishUnlessAsked();
  } else {
    Answer(StatusOfCode(error.code()), error, true);
    FinishSoon();
  }
  StepIfIdle();
}

}  // namespace resmgr::docker
