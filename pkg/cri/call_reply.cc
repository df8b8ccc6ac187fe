// SPDX-License-Identifier: Apache-2.0
// The way of a call's reply: from one runtime, whose outcome the stages see before the client does,
// or from all of them.
#include <string_view>
#include <utility>
#include <vector>

#include "pkg/cri/call.h"
#include "pkg/cri/call_reading.h"
#include "pkg/cri/connection.h"
#include "pkg/cri/relay.h"

namespace resmgr {

bool Call::ReadsReply() const {
  return (LookedAt() && reading_->stages->reads_reply) ||
         (routing_ != nullptr && routing_->ReadsReply());
}

void Call::OnHeaders(h2::Stream&, const h2::HeaderBlock& headers, bool end) {
  if (end) {
    if (!OnOutcome(headers)) {
      reading_->reply_end = headers;
      reading_->reply_is_end = true;
      HoldTrailers(headers);
      return;
    }
  } else {
    if (reading_ != nullptr) {
      // Not all of what may be a quarter of a megabyte.
      const std::string_view encoding = headers.Find("grpc-encoding");
      if (!encoding.empty()) reading_->reply_headers.Add("grpc-encoding", encoding.substr(0, 16));
    }
    if (tap_ != nullptr) tap_->OnReplyHeaders(headers);
  }
  client_->SendHeaders(headers, end);
}

void Call::OnMalformed(std::string_view what) {
  EndPipeline();
  Finish(Internal("the runtime {} in {}", what, method_.name));
}

// A client that does not read its replies keeps their trailers waiting, too.
void Call::HoldTrailers(const h2::HeaderBlock& trailers) {
  const bool held = reading_ != nullptr && reading_->holds_reply();
  if (!client_->open() || !(held || client_->end_waits())) return;
  const size_t memory = trailers.memory();
  if (connection_.Hold(*this, memory)) held_ += memory;
}

bool Call::OnOutcome(const h2::HeaderBlock& trailers) {
  clock_.NoteAnswered();
  if (!LookedAt() && routing_ == nullptr && !Watched()) return true;
  const GrpcStatus status = ReadGrpcStatus(trailers);
  if (!Settle(status)) return false;
  if (ReplyError().ok()) Report(status);
  return true;
}

Status Call::ReplyError() const {
  return reading_ != nullptr && reading_->stages ? reading_->stages->call.reply_error()
                                                 : OkStatus();
}

void Call::EndReply(const h2::HeaderBlock& end) {
  if (const Status error = ReplyError(); !error.ok()) return Finish(error);
  client_->SendEnd(end);
}

bool Call::Watched() const {
  return tap_ != nullptr || connection_.relay().counts_calls();
}

void Call::Report(const GrpcStatus& status) {
  if (std::exchange(reported_, true)) return;
  if (tap_ != nullptr) tap_->OnEnd(status);
  if (server_ != nullptr) CountAtRuntime(status.ok());
  const bool intercepted = reading_ != nullptr && reading_->stages.has_value();
  connection_.relay().CountCall(method_, intercepted, status.code, clock_);
}

void Call::CountAtRuntime(bool ok) {
  BackendRouter* const router = connection_.relay().router();
  if (router != nullptr)
    router->backends().Count(routing_ == nullptr ? 0 : routing_->position(), ok);
}

bool Call::Settle(const GrpcStatus& status) {
  if (!LookedAt() && routing_ == nullptr) return true;
  std::string_view message;
  if (HeldMessage& reply = reading_->reply; status.ok() && reply.size() > 0) {
    message = reply.Read(reading_->reply_headers).value_or("");
  }
  if (routing_ != nullptr && status.ok()) routing_->OnReply(message);
  if (!LookedAt()) return true;
  return reading_->stages->call.OnReply(ReadOutcome(method_.operation, status.code, message));
}

void Call::OnReplySeen() {
  const h2::FlushQueue::Scope scope(connection_.relay().flushes());
  if (!client_->open()) return;
  if (Watched() && ReplyError().ok()) Report(ReadGrpcStatus(reading_->reply_end));
  if (reading_->reply_is_end) {
    client_->SendHeaders(reading_->reply_end, true);
  } else {
    EndReply(reading_->reply_end);
  }
  // Else OnServerClosed does it.
  if (!server_->open()) client_->StopReceiving();
}

void Call::FanOut() {
  collecting_ = false;
  FanOutCall::Client& client = *this;
  FanOutCall::Options options{
      .streams = routing_->streams(),
      .ended = [&backends = connection_.relay().router()->backends()](size_t runtime, bool ok) {
        backends.Count(runtime, ok);
      }};
  if (const MergeReplies merge = routing_->merge(); merge != nullptr) {
    options.merge = [merge,
                     &backends = routing_->backends()](const std::vector<RuntimeReply>& replies) {
      return merge(backends, replies);
    };
  }
  fan_out_ = std::make_unique<FanOutCall>(connection_.loop(), client, std::move(options));
  clock_.NoteForwarded();
  for (const Backends::Backend& backend : routing_->backends().all()) {
    const Status added =
        fan_out_->Add(backend.name, connection_.SessionTo(routing_->SocketOf(backend)), headers_,
                      reading_->request.body());
    if (!added.ok()) return Finish(added);
  }
  reading_->request.Clear();
  ReleaseRequest();
  fan_out_->AllAdded();
}

bool Call::HoldReply(size_t bytes) {
  if (!connection_.Hold(*this, bytes)) return false;
  held_ += bytes;
  return true;
}

void Call::OnReplies(const std::vector<h2::SliceQueue>& messages) {
  clock_.NoteAnswered();
  routing_->OnReplies(messages);
}

bool Call::OnMessage(const h2::SliceQueue& message) {
  if (!client_->headers_sent()) {
    h2::HeaderBlock headers;
    headers.Add(":status", "200");
    headers.Add("content-type", "application/grpc");
    if (tap_ != nullptr) tap_->OnReplyHeaders(headers);
    client_->SendHeaders(headers, false);
  }
  for (const h2::Slice& slice : message.slices()) {
    if (tap_ != nullptr) tap_->OnReplyData(slice.view());
    if (events_ != nullptr) events_->Feed(slice.view());
    client_->SendData(slice);
  }
  return true;
}

void Call::OnFanOutEnd(const Status& status) {
  Finish(status);
}

}  // namespace resmgr
