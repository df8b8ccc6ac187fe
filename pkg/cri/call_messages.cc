// SPDX-License-Identifier: Apache-2.0
// The request of a call that is read before it is forwarded: it is collected, decompressed, routed,
// shown to the stages, and sent with their changes. The reply: from one runtime, whose outcome the
// stages see before the client does, or from all runtimes.
#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "pkg/cri/adjustment_edits.h"
#include "pkg/cri/call.h"
#include "pkg/cri/call_reading.h"
#include "pkg/cri/connection.h"
#include "pkg/cri/relay.h"
#include "pkg/h2/limits.h"

namespace resmgr {
namespace {

// Copies the bytes into several blocks, so that each block is freed as soon as its bytes have left.
h2::SliceQueue CopyInPieces(std::string_view bytes) {
  h2::SliceQueue pieces;
  for (; !bytes.empty(); bytes.remove_prefix(std::min(bytes.size(), h2::kScratchBlock)))
    pieces.Append(h2::Slice::Copy(bytes.substr(0, h2::kScratchBlock)));
  return pieces;
}

}  // namespace

void Call::Keep(const h2::Slice& data) {
  client_->Consume(data.size());
  reading_->request.Add(data, connection_.scratch());
  if (HoldRequest() && !reading_->request.fits()) {
    PassUnread(ResourceExhausted("it is larger than any runtime takes"));
  }
}

bool Call::HoldRequest() {
  const size_t memory = reading_->request.memory();
  if (memory <= reading_->held) return true;
  const size_t more = memory - reading_->held;
  if (!connection_.Hold(*this, more)) return false;
  held_ += more;
  reading_->held = memory;
  return true;
}

void Call::ReleaseRequest() {
  connection_.Release(reading_->held);
  held_ -= reading_->held;
  reading_->held = 0;
}

void Call::Open() {
  HeldMessage& request = reading_->request;
  if (const Status status = request.Open(headers_); !status.ok()) {
    PassUnread(status);
  } else if (request.packed()) {
    unpacking_ = true;
    connection_.relay().UnpackSoon(*this);
  } else {
    Decide();
  }
}

bool Call::Unpack(size_t most) {
  unpacking_ = false;
  if (!LookedAt() && routing_ == nullptr && aliased_ == nullptr) return false;
  const StatusOr<bool> whole = reading_->request.Unpack(most);
  if (!whole.ok()) {
    PassUnread(whole.status());
  } else if (!HoldRequest()) {
    return false;
  } else if (*whole) {
    Decide();
  } else {
    unpacking_ = true;
  }
  return unpacking_;
}

void Call::Decide() {
  if (routing_ == nullptr) return OnRouted(OkStatus());
  routing_->Choose(reading_->request.message(), Patience(), [this](const Status& status) {
    const h2::FlushQueue::Scope scope(connection_.relay().flushes());
    OnRouted(status);
  });
}

void Call::OnRouted(const Status& status) {
  if (!status.ok()) return Finish(status);
  if (LookedAt()) return StartPipeline();
  if (!NameRuntimesHandlers()) return;
  if (routing_ != nullptr && routing_->all()) {
    FanOut();
  } else {
    ForwardWhole();
  }
}

void Call::ForwardWhole(std::string_view suffix, bool other_message) {
  if (!Forward(HeadersToSend(other_message || !suffix.empty()), false)) return;
  SendRequest(suffix);
  server_->SendEnd();
}

void Call::StartPipeline() {
  CriRequest& request = reading_->stages->request;
  const std::string_view message = reading_->request.message();
  if (request.Read(message)) {
    reading_->stages->call.Start(request.request());
  } else if (!IsCutShort(message)) {
    // A runtime with a less strict parser might carry the request out.
    Finish(InvalidArgument("cannot tell what this {} is to do: its message is malformed",
                           method_.name));
  } else {
    EndPipeline();
    if (NameRuntimesHandlers()) SendWith("");
  }
}

bool Call::NameRuntimesHandlers() {
  if (aliased_ == nullptr) return true;
  HeldMessage& request = reading_->request;
  const std::optional<std::string> changed = aliased_->OnRequest(request.message());
  if (!changed) return true;
  if (tap_ != nullptr) tap_->OnRequestReplaced(request.message(), *changed);
  if (reading_->stages) reading_->stages->request.request().Close();
  const std::string_view whole = *changed;
  request.Replace({&whole, 1});
  reading_->other_handlers = true;
  return HoldRequest();
}

void Call::PassUnread(const Status& why) {
  if (routing_ != nullptr) {
    return Finish(
        InvalidArgument("cannot tell which runtime {} is for: {}", method_.name, Message(why)));
  }
  // A runtime that can read the request would carry it out without the policy's decision.
  const bool readable = !request_complete_ || !reading_->request.cut_short();
  if (LookedAt() && readable) {
    return Finish(Annotate(why, fmt::format("cannot tell what this {} is to do", method_.name)));
  }
  connection_.relay().NoteUnread(method_, Message(why));
  EndPipeline();
  if (!Forward(HeadersToSend(false), false)) return;
  SendRequest("");
  if (request_complete_) server_->SendEnd();
}

bool Call::Has(Operation operation, Field field) const {
  return CriHas(operation, field);
}

void Call::OnDecided(const Status& refusal, const Adjustment& adjustment) {
  const h2::FlushQueue::Scope scope(connection_.relay().flushes());
  if (!refusal.ok()) return Finish(refusal);
  if (!NameRuntimesHandlers()) return;
  if (adjustment.wide() != nullptr) {
    SendSpliced(adjustment);
  } else {
    SendWith(connection_.relay().suffix().For(method_.operation, adjustment.values));
  }
}

void Call::SendWith(std::string_view suffix, bool other_message) {
  if (tap_ != nullptr && !suffix.empty()) {
    tap_->OnRequestChanged(reading_->request.message(), suffix);
  }
  reading_->stages->request.request().Close();
  ForwardWhole(suffix, other_message);
}

void Call::SendSpliced(const Adjustment& adjustment) {
  HeldMessage& request = reading_->request;
  const StatusOr<SplicedMessage> spliced =
      SpliceAdjustment(method_.operation, request.message(), adjustment);
  if (!spliced.ok()) {
    reading_->stages->call.RollBack();
    Finish(spliced.status());
    return;
  }
  if (spliced->suffix()) {
    SendWith(*spliced->suffix());
    return;
  }
  if (tap_ != nullptr) tap_->OnRequestReplaced(request.message(), spliced->ToString());
  request.Replace(spliced->pieces());
  if (HoldRequest()) SendWith("", /*other_message=*/true);
}

void Call::SendRequest(std::string_view suffix) {
  HeldMessage& request = reading_->request;
  collecting_ = false;
  if (!suffix.empty()) request.MakeLonger(suffix.size());
  reading_->prepaid += request.size() + suffix.size();
  for (const h2::Slice& slice : request.body().slices())
    server_->SendData(slice);
  if (!suffix.empty()) server_->SendData(connection_.scratch().Copy(suffix));
  request.Clear();
}

BodyRewriter::BodyRewriter(Rewrite rewrite)
    : rewrite_(std::move(rewrite)),
      reader_(kMostOfMessage, [this](const GrpcMessage& message) { Take(message); }) {}

StatusOr<std::string> BodyRewriter::Feed(std::string_view bytes) {
  reader_.Feed(bytes);
  RESMGR_RETURN_IF_ERROR(failure_);
  return std::exchange(out_, {});
}

void BodyRewriter::Take(const GrpcMessage& message) {
  if (message.truncated()) {
    failure_ = ResourceExhausted("sent a message of {} bytes", message.size);
    return;
  }
  const std::optional<std::string> changed =
      message.compressed ? std::nullopt : rewrite_(message.payload);
  const std::string& payload = changed ? *changed : message.payload;
  out_ += EncodeGrpcPrefix(message.compressed, payload.size());
  out_ += payload;
}

bool Call::ReadsReply() const {
  return (LookedAt() && reading_->stages->reads_reply) ||
         (routing_ != nullptr && routing_->ReadsReply()) ||
         (aliased_ != nullptr && aliased_->ReadsReply());
}

void Call::PassRewritten(const h2::Slice& data) {
  rewriting_->owed += data.size();
  const StatusOr<std::string> more = rewriting_->body.Feed(data.view());
  if (!more.ok()) return Finish(Annotate(more.status(), "the runtime"));
  const h2::SliceQueue pieces = CopyInPieces(*more);
  for (const h2::Slice& slice : pieces.slices())
    client_->SendData(slice);
  NoteQueued();
  // A piece that leaves at once is counted, too, which may have ended the call.
  if (rewriting_ != nullptr) ConsumeRewritten();
}

void Call::ConsumeRewritten() {
  const size_t waiting = client_->queued();
  const size_t held = rewriting_->body.held() + waiting;
  const size_t before = std::exchange(rewriting_->held, held);
  if (held > before && !HoldReply(held - before)) return;
  if (held < before) {
    connection_.Release(before - held);
    held_ -= before - held;
  }
  if (waiting < FanOutCall::kMostWaiting) server_->Consume(std::exchange(rewriting_->owed, 0));
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
      // Truncated, since the client may have sent a header field of up to 256 KiB.
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

// The trailers wait, too, if a client does not read its replies.
void Call::HoldTrailers(const h2::HeaderBlock& trailers) {
  const bool held = reading_ != nullptr && reading_->holds_reply();
  if (!client_->open() || !(held || client_->end_waits())) return;
  const size_t memory = trailers.memory();
  if (connection_.Hold(*this, memory)) held_ += memory;
}

bool Call::OnOutcome(const h2::HeaderBlock& trailers) {
  clock_.NoteAnswered();
  if (method_.unknown) refused_ = !ReadGrpcStatus(trailers).ok();
  if (!LookedAt() && routing_ == nullptr && aliased_ == nullptr && !Watched()) return true;
  const GrpcStatus status = ReadGrpcStatus(trailers);
  if (!Settle(status)) return false;
  if (ReplyError().ok()) Report(status);
  return true;
}

Status Call::ReplyError() const {
  if (routing_ != nullptr && !routing_->refusal().ok()) return routing_->refusal();
  return reading_ != nullptr && reading_->stages ? reading_->stages->call.reply_error()
                                                 : OkStatus();
}

void Call::EndReply(const h2::HeaderBlock& end) {
  if (const Status error = ReplyError(); !error.ok()) return Finish(error);
  client_->SendEnd(end);
}

bool Call::Watched() const {
  // With several runtimes, each runtime's calls are counted (CountAtRuntime).
  return tap_ != nullptr || connection_.relay().counts().on() ||
         connection_.relay().router() != nullptr;
}

void Call::Report(const GrpcStatus& status) {
  if (std::exchange(reported_, true)) return;
  if (tap_ != nullptr) tap_->OnEnd(status);
  if (server_ != nullptr) CountAtRuntime(status.ok());
  const bool intercepted = reading_ != nullptr && reading_->stages.has_value();
  connection_.relay().counts().End(method_, intercepted, status.code, clock_);
}

void Call::CountAtRuntime(bool ok) {
  BackendRouter* const router = connection_.relay().router();
  if (router != nullptr) router->backends().Count(runtime_, ok);
}

bool Call::Settle(const GrpcStatus& status) {
  if (!LookedAt() && routing_ == nullptr && aliased_ == nullptr) return true;
  std::string_view message;
  if (reading_ != nullptr && status.ok() && reading_->reply.size() > 0) {
    message = reading_->reply.Read(reading_->reply_headers).value_or("");
  }
  int code = status.code;
  if (routing_ != nullptr && status.ok()) {
    const Status learned = routing_->OnReply(message);
    // The stages see a failure, too: they must not take the id for the other runtime's object.
    if (!learned.ok()) code = static_cast<int>(learned.code());
  }
  if (aliased_ != nullptr && code == 0) aliased_->OnReply(message);
  if (!LookedAt()) return true;
  Outcome outcome = ReadOutcome(method_.operation, code, message);
  if (code != 0) outcome.message = status.message;
  return reading_->stages->call.OnReply(std::move(outcome));
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
  // If the runtime's stream is still open, OnServerClosed does this later.
  if (!server_->open()) client_->StopReceiving();
}

// At most a part of the client's timeout, so that time is left to answer.
std::chrono::milliseconds Call::Patience() const {
  constexpr std::chrono::milliseconds kLongest = FanOutCall::kPatience;
  const auto timeout = ReadGrpcTimeout(headers_);
  if (!timeout || *timeout >= 2 * kLongest) return kLongest;
  return std::clamp(*timeout * 3 / 4, std::chrono::milliseconds(1), kLongest);
}

void Call::FanOut() {
  collecting_ = false;
  FanOutCall::Client& client = *this;
  FanOutCall::Options options{
      .streams = routing_->streams(),
      .endless = method_.endless,
      .ended = [&backends = connection_.relay().router()->backends()](size_t runtime, bool ok) {
        backends.Count(runtime, ok);
      }};
  if (!routing_->changes()) options.patience = Patience();
  if (const MergeReplies merge = routing_->merge(); merge != nullptr) {
    options.merge = [merge,
                     &backends = routing_->backends()](const std::vector<RuntimeReply>& replies) {
      return merge(backends, replies);
    };
  }
  if (routing_->streams()) {
    options.edit = [this](size_t runtime, std::string_view message) {
      return routing_->OwnPart(runtime, message);
    };
  }
  // A kubelet asks all runtimes about images, even if only one runtime needs the image, so a call
  // about images does not wait for a hanging runtime.
  if (method_.service == Service::kImage || routing_->changes()) {
    options.hangs = [&backends = routing_->backends()](size_t runtime) {
      return backends.Hangs(runtime);
    };
    options.silent = [&backends = routing_->backends()](size_t runtime) {
      backends.NoteSilence(runtime);
    };
  }
  fan_out_ = std::make_unique<FanOutCall>(connection_.loop(), client, std::move(options));
  clock_.NoteForwarded();
  size_t position = 0;
  for (const Backends::Backend& backend : routing_->backends().all()) {
    if (const auto settled = routing_->Settled(position++)) {
      fan_out_->AddSettled(backend.name, *settled);
      continue;
    }
    const Status added =
        fan_out_->Add(backend.name, connection_.SessionTo(routing_->SocketOf(backend)),
                      HeadersToSend(false), reading_->request.body());
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

void Call::OnReplies(std::vector<h2::SliceQueue>& messages) {
  clock_.NoteAnswered();
  routing_->OnReplies(messages);
}

h2::SliceQueue Call::Rewritten(const h2::SliceQueue& message) {
  if (aliased_ == nullptr || !aliased_->RewritesReply()) return message;
  const std::string bytes = message.ToString();
  const std::optional<std::string> changed =
      aliased_->Rewrite(std::string_view(bytes).substr(kGrpcPrefixSize));
  if (!changed) return message;
  return CopyInPieces(EncodeGrpcPrefix(false, changed->size()) + *changed);
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
  }
  const h2::SliceQueue body = Rewritten(message);
  for (const h2::Slice& slice : body.slices())
    client_->SendData(slice);
  NoteQueued();
  return true;
}

void Call::OnFanOutEnd(const Status& status) {
  Finish(status);
}

}  // namespace resmgr
