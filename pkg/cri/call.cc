// SPDX-License-Identifier: Apache-2.0
#include "pkg/cri/call.h"

#include <algorithm>
#include <utility>

#include "pkg/cri/call_reading.h"
#include "pkg/cri/connection.h"
#include "pkg/cri/edit_fields.h"
#include "pkg/cri/relay.h"
#include "pkg/h2/memory.h"

namespace resmgr {

namespace {

constexpr int kCancelled = 1;  // gRPC's status code
// Memory of a call and of its entries in tables, without message bytes and header fields.
constexpr size_t kCallCost = sizeof(Call) + 2 * sizeof(h2::Stream) + 256;

}  // namespace

Call::Call(Connection& connection, std::unique_ptr<h2::Stream> client, h2::HeaderBlock headers)
    : connection_(connection),
      client_(std::move(client)),
      headers_(std::move(headers)),
      method_(connection.Classify(headers_)) {
  h2::Memory::Add(kCallCost);
  client_->set_handler(this);
  if (!method_.endless) return;
  // Events are read even if no policy needs them: a reader that begins later could not find where
  // the next message begins.
  Relay& relay = connection_.relay();
  events_ = std::make_unique<EventListener>(
      connection.loop(), [&relay](const ContainerEvent& event) { relay.NoteEvent(event); },
      [this] { EndListener(); });
  relay.AddListener();
}

Call::~Call() {
  h2::Memory::Sub(kCallCost);
  connection_.relay().SubEnding(ending_);
  if (method_.endless) connection_.relay().RemoveListener();
  if (unpacking_) connection_.relay().ForgetUnpacking(*this);
  connection_.Release(held_);
  if (!reported_ && Watched()) Report({.code = kCancelled, .message = "the call was given up"});
  if (method_.unknown && server_ != nullptr && !refused_) connection_.relay().NoteUnknownMethod();
}

bool Call::LookedAt() const {
  return reading_ != nullptr && reading_->stages && !reading_->stages->call.over();
}

void Call::EndPipeline() {
  if (reading_ != nullptr && reading_->stages) reading_->stages->call.Abandon();
}

void Call::Start(bool end) {
  Relay& relay = connection_.relay();
  if (relay.counts().on()) {
    clock_.Begin();
    relay.counts().Begin();
  }
  const size_t headers = headers_.memory() + kCallCost;
  if (!connection_.Hold(*this, headers)) return;
  held_ += headers;
  Pipeline* const pipeline = relay.pipeline();
  if (pipeline != nullptr && pipeline->LooksAt(method_.operation)) {
    reading_ = std::make_unique<Reading>();
    PipelineCall::Front& front = *this;
    reading_->stages.emplace(*pipeline, front, method_.operation);
  }
  tap_ = relay.MakeTap(method_, reading_ != nullptr);
  if (relay.router() != nullptr && relay.SocketFor(method_).ok()) {
    routing_ = CallRouting::Begin(*relay.router(), method_);
    if (routing_ != nullptr && reading_ == nullptr) reading_ = std::make_unique<Reading>();
  }
  if (relay.aliases() != nullptr) {
    aliased_ = AliasedCall::Begin(*relay.aliases(), method_, relay.router() != nullptr);
    if (aliased_ != nullptr && aliased_->ReadsRequest() && reading_ == nullptr)
      reading_ = std::make_unique<Reading>();
  }
  if (tap_ != nullptr) tap_->OnRequestHeaders(headers_);
  request_complete_ = end;
  collecting_ = reading_ != nullptr && !end;
  if (collecting_) return;
  EndPipeline();
  if (aliased_ == nullptr) {
    Forward(headers_, end);
  } else {
    Forward(HeadersToSend(false), end);
  }
}

h2::HeaderBlock Call::HeadersToSend(bool other_message) const {
  h2::HeaderBlock headers = headers_;
  if (other_message || (reading_ != nullptr && reading_->other_handlers))
    headers.Remove("content-length");
  // A compressed reply could not be rewritten.
  if (RewritesReply()) headers.Remove("grpc-accept-encoding");
  return headers;
}

bool Call::RewritesReply() const {
  return (aliased_ != nullptr && aliased_->RewritesReply()) ||
         (routing_ != nullptr && routing_->RewritesReply()) ||
         (LookedAt() && reading_->stages->call.ShowsAsked());
}

std::optional<std::string> Call::RewrittenReply(std::string_view message) {
  std::optional<std::string> whole;
  const auto pass = [&](const BodyRewriter::Rewrite& rewrite) {
    std::optional<std::string> changed = rewrite(whole ? std::string_view(*whole) : message);
    if (changed) whole = std::move(changed);
  };
  if (aliased_ != nullptr && aliased_->RewritesReply()) {
    pass([this](std::string_view text) { return aliased_->Rewrite(text); });
  }
  if (routing_ != nullptr && routing_->RewritesReply()) {
    pass([this](std::string_view text) { return routing_->Rewrite(text); });
  }
  if (LookedAt() && reading_->stages->call.ShowsAsked()) {
    pass([this](std::string_view text) {
      return WithCpuNumbers(
          text, [this](CpuNumbers& reported) { reading_->stages->call.ShowAsked(reported); });
    });
  }
  return whole;
}

void Call::BeginRewriting() {
  if (!RewritesReply()) return;
  rewriting_ = std::make_unique<Rewriting>(
      [this](std::string_view message) { return RewrittenReply(message); });
}

bool Call::Forward(const h2::HeaderBlock& headers, bool end) {
  if (routing_ != nullptr) runtime_ = routing_->position();
  StatusOr<h2::Session*> session =
      routing_ == nullptr ? connection_.SessionFor(method_)
                          : connection_.SessionTo(routing_->SocketOf(routing_->backend()));
  if (session.ok()) {
    server_ = (*session)->OpenStream(headers, end, *this);
    if (server_ != nullptr) {
      clock_.NoteForwarded();
      BeginRewriting();
      return true;
    }
    session = Unavailable("the runtime closed the connection");
  }
  CountAtRuntime(false);
  Settle({.code = static_cast<int>(session.status().code()), .message = {}});
  Finish(session.status());
  return false;
}

void Call::OnData(h2::Stream& stream, const h2::Slice& data) {
  if (FromClient(stream)) {
    if (tap_ != nullptr) tap_->OnRequestData(data.view());
    if (collecting_) {
      Keep(data);
    } else if (server_ != nullptr) {
      server_->SendData(data);
    }
    return;
  }
  if (!client_->headers_sent()) {
    OnMalformed("sent a body without header fields before it");
    return;
  }
  if (tap_ != nullptr) tap_->OnReplyData(data.view());
  if (events_ != nullptr) events_->Feed(data.view());
  if (ReadsReply() && reading_->reply.fits()) {
    reading_->reply.Add(data, connection_.scratch());
  }
  if (rewriting_ != nullptr) return PassRewritten(data);
  client_->SendData(data);
  NoteQueued();
}

void Call::OnEnd(h2::Stream& stream, const h2::HeaderBlock& trailers) {
  if (!FromClient(stream)) {
    if (trailers.empty()) {
      OnMalformed("ended its answer without a status");
      return;
    }
    if (rewriting_ != nullptr && !rewriting_->body.complete() && ReadGrpcStatus(trailers).ok()) {
      OnMalformed("ended its answer within a message");
      return;
    }
    if (OnOutcome(trailers)) {
      EndReply(trailers);
    } else {
      reading_->reply_end = trailers;
    }
    HoldTrailers(trailers);
    return;
  }
  request_complete_ = true;
  if (collecting_) {
    Open();
  } else if (server_ != nullptr) {
    server_->SendEnd(trailers);
  }
}

void Call::Finish(const Status& status) {
  h2::HeaderBlock trailers;
  Report({.code = static_cast<int>(status.code()), .message = std::string(Message(status))});
  if (client_->headers_sent()) {
    AddGrpcStatus(status, trailers);
    client_->SendEnd(trailers);
  } else {
    trailers.Add(":status", "200");
    trailers.Add("content-type", "application/grpc");
    AddGrpcStatus(status, trailers);
    client_->SendHeaders(trailers, true);
  }
  client_->StopReceiving();
  GiveUp();
}

void Call::EndParts() {
  collecting_ = false;
  EndPipeline();
  routing_.reset();
  fan_out_.reset();
  rewriting_.reset();
  aliased_.reset();
}

void Call::GiveUp() {
  EndParts();
  if (server_ != nullptr) server_->Reset(static_cast<uint32_t>(h2::ErrorCode::kCancel));
  if (reading_ == nullptr) return;
  reading_->request.Clear();
  ReleaseRequest();
}

void Call::EndForMemory(std::string_view why) {
  if (ending_ > 0) return;
  const Status status = ResourceExhausted("{} was ended: {}", method_.name, why);
  connection_.relay().NoteEnded(status);
  if (!client_->headers_sent()) {
    Finish(status);
  } else {
    EndAtOnce(status);
  }
  // Released now: a turn of the loop may end hundreds of calls before the first of them is closed.
  method_.path = method_.name = {};
  headers_ = {};
  ending_ = kCallCost;
  connection_.relay().AddEnding(ending_);
  connection_.Release(std::exchange(held_, 0));
}

// A status would wait behind the bytes that the client does not take.
void Call::EndAtOnce(const Status& status) {
  Report({.code = static_cast<int>(status.code()), .message = std::string(Message(status))});
  client_->Reset(static_cast<uint32_t>(h2::ErrorCode::kEnhanceYourCalm));
  GiveUp();
}

void Call::EndListener() {
  if (!client_->open() || ending_ > 0) return;
  const h2::FlushQueue::Scope scope(connection_.relay().flushes());
  const Status status = ResourceExhausted("{} was ended: its client has taken nothing for {} s",
                                          method_.name, EventListener::kPatience.count());
  connection_.relay().NoteEnded(status);
  // An event of unknown kind stands for those that are dropped with the stream.
  connection_.relay().NoteEvent({});
  EndAtOnce(status);
}

void Call::OnSent(h2::Stream& stream, size_t count) {
  if (FromClient(stream)) {
    if (events_ != nullptr) events_->OnSent(client_->queued());
    if (server_ != nullptr) {
      // ConsumeRewritten() may end and destroy this call.
      if (rewriting_ != nullptr) return ConsumeRewritten();
      server_->Consume(count);
    }
    if (fan_out_ != nullptr) fan_out_->OnSent(client_->queued());
    return;
  }
  if (reading_ != nullptr) {
    const size_t paid = std::min(count, reading_->prepaid);
    reading_->prepaid -= paid;
    count -= paid;
    if (reading_->prepaid == 0 && reading_->held > 0) ReleaseRequest();
  }
  client_->Consume(count);
}

void Call::OnClose(h2::Stream& stream, uint32_t error_code) {
  if (FromClient(stream)) {
    EndParts();
    const bool ended = error_code == static_cast<uint32_t>(h2::ErrorCode::kNoError);
    if (server_ != nullptr && server_->open()) {
      server_->Reset(ended ? static_cast<uint32_t>(h2::ErrorCode::kCancel) : error_code);
    }
  } else {
    OnServerClosed(error_code);
  }
  if (Over()) connection_.Remove(*this);
}

void Call::OnServerClosed(uint32_t error_code) {
  if (!client_->open()) return;
  // If a stage holds the reply, the call ends when the stage releases it.
  if (reading_ != nullptr && reading_->holds_reply()) return;
  if (client_->ended()) {
    client_->StopReceiving();
    return;
  }
  // The stream ended without a status, so the call's outcome is unknown.
  EndPipeline();
  if (server_->connection_lost() || error_code == static_cast<uint32_t>(h2::ErrorCode::kNoError)) {
    Finish(Unavailable("the connection to the runtime broke during {}", method_.name));
  } else {
    client_->Reset(error_code);
  }
}

bool Call::Over() const {
  return !client_->open() && (server_ == nullptr || !server_->open());
}

}  // namespace resmgr
