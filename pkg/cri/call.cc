// SPDX-License-Identifier: Apache-2.0
#include "pkg/cri/call.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "pkg/cri/adjustment_edits.h"
#include "pkg/cri/connection.h"
#include "pkg/cri/cri_request.h"
#include "pkg/cri/held_message.h"
#include "pkg/cri/relay.h"
#include "pkg/h2/memory.h"

namespace resmgr {

namespace {

// Above this the runtimes refuse a message themselves (containerd and CRI-O take 16 MiB).
constexpr size_t kMaxIntercepted = size_t{16} * 1024 * 1024;
// Of a reply that stages look at: an id.
constexpr size_t kMaxHeldReply = size_t{64} * 1024;
constexpr int kCancelled = 1;

}  // namespace

struct Call::Reading : public Recycled<Reading> {
  // Not defaulted: `Reading()` would zero all of it first, and the stages' part is large.
  Reading() {}  // NOLINT(modernize-use-equals-default)

  HeldMessage request{kMaxIntercepted};
  size_t prepaid = 0;  // request bytes whose window was opened before they were sent on
  size_t held = 0;     // of Call::held_, for the request
  HeldMessage reply{kMaxHeldReply};
  h2::HeaderBlock reply_headers;
  // The end of the reply, while a stage holds it, and whether that is all of it.
  h2::HeaderBlock reply_end;
  bool reply_is_end = false;

  // What stages do with it; uses all that is above.
  struct Stages {
    Stages(Pipeline& pipeline, PipelineCall::Front& front, Operation operation)
        : reads_reply(RepliesTell(operation)), request(operation), call(pipeline, front) {}

    const bool reads_reply;
    CriRequest request;
    PipelineCall call;
  };
  std::optional<Stages> stages;

  bool holds_reply() const { return stages && stages->call.HoldsReply(); }
};

// What a call takes without its bytes and header fields, its part in tables included.
constexpr size_t kCallCost = sizeof(Call) + 2 * sizeof(h2::Stream) + 256;

Call::Call(Connection& connection, std::unique_ptr<h2::Stream> client, h2::HeaderBlock headers)
    : connection_(connection),
      client_(std::move(client)),
      headers_(std::move(headers)),
      method_(connection.Classify(headers_)) {
  h2::Memory::Add(kCallCost);
  client_->set_handler(this);
  if (!method_.endless) return;
  // Also where no policy looks at calls: one that comes later has to find the next message.
  Relay& relay = connection_.relay();
  events_ = std::make_unique<EventReader>(
      [&relay](const ContainerEvent& event) { relay.NoteEvent(event); });
  relay.AddListener();
}

Call::~Call() {
  h2::Memory::Sub(kCallCost);
  connection_.relay().SubEnding(ending_);
  if (method_.endless) connection_.relay().RemoveListener();
  if (unpacking_) connection_.relay().ForgetUnpacking(*this);
  connection_.Let(held_);
  if (!reported_ && Watched()) Report({.code = kCancelled, .message = "the call was given up"});
}

bool Call::LookedAt() const {
  return reading_ != nullptr && reading_->stages && !reading_->stages->call.over();
}

void Call::EndPipeline() {
  if (reading_ != nullptr && reading_->stages) reading_->stages->call.Abandon();
}

void Call::Start(bool end) {
  Relay& relay = connection_.relay();
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
  if (relay.router() != nullptr) {
    routing_ = CallRouting::Begin(*relay.router(), method_);
    if (routing_ != nullptr && reading_ == nullptr) reading_ = std::make_unique<Reading>();
  }
  if (tap_ != nullptr) tap_->OnRequestHeaders(headers_);
  request_complete_ = end;
  collecting_ = reading_ != nullptr && !end;
  if (collecting_) return;
  EndPipeline();
  Forward(headers_, end);
}

bool Call::Forward(const h2::HeaderBlock& headers, bool end) {
  StatusOr<h2::Session*> session = routing_ == nullptr
                                       ? connection_.SessionFor(method_)
                                       : connection_.SessionTo(routing_->backend().socket);
  if (session.ok()) {
    server_ = (*session)->OpenStream(headers, end, *this);
    if (server_ != nullptr) return true;
    session = Unavailable("the runtime closed the connection");
  }
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
  client_->SendData(data);
}

void Call::Keep(const h2::Slice& data) {
  client_->Consume(data.size());
  reading_->request.Add(data, connection_.scratch());
  if (HoldRequest() && !reading_->request.fits()) PassUnread("it is larger than any runtime takes");
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

void Call::LetRequest() {
  connection_.Let(reading_->held);
  held_ -= reading_->held;
  reading_->held = 0;
}

void Call::OnEnd(h2::Stream& stream, const h2::HeaderBlock& trailers) {
  if (!FromClient(stream)) {
    if (trailers.empty()) {
      OnMalformed("ended its answer without a status");
      return;
    }
    if (OnOutcome(trailers)) {
      client_->SendEnd(trailers);
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

// A client that does not read its replies keeps their trailers waiting, too.
void Call::HoldTrailers(const h2::HeaderBlock& trailers) {
  const bool held = reading_ != nullptr && reading_->holds_reply();
  if (!client_->open() || !(held || client_->end_waits())) return;
  const size_t memory = trailers.memory();
  if (connection_.Hold(*this, memory)) held_ += memory;
}

void Call::Open() {
  HeldMessage& request = reading_->request;
  if (const Status status = request.Open(headers_); !status.ok()) {
    PassUnread(Message(status));
  } else if (request.packed()) {
    unpacking_ = true;
    connection_.relay().UnpackSoon(*this);
  } else {
    Decide();
  }
}

bool Call::Unpack(size_t most) {
  unpacking_ = false;
  if (!LookedAt() && routing_ == nullptr) return false;
  const StatusOr<bool> whole = reading_->request.Unpack(most);
  if (!whole.ok()) {
    PassUnread(Message(whole.status()));
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
  routing_->Choose(reading_->request.message(), [this](const Status& status) {
    const h2::FlushQueue::Scope scope(connection_.relay().flushes());
    OnRouted(status);
  });
}

void Call::OnRouted(const Status& status) {
  if (!status.ok()) return Finish(status);
  if (LookedAt()) {
    StartPipeline();
  } else if (routing_->all()) {
    FanOut();
  } else if (Forward(headers_, false)) {
    SendRequest("");
    server_->SendEnd();
  }
}

void Call::StartPipeline() {
  CriRequest& request = reading_->stages->request;
  if (request.Read(reading_->request.message())) {
    reading_->stages->call.Start(request.request());
  } else {
    EndPipeline();
    SendWith("");
  }
}

void Call::FanOut() {
  collecting_ = false;
  FanOutCall::Client& client = *this;
  fan_out_ = std::make_unique<FanOutCall>(client, routing_->streams());
  for (const Backends::Backend& backend : routing_->backends().all()) {
    StatusOr<h2::Session*> session = connection_.SessionTo(backend.socket);
    if (session.ok() &&
        !fan_out_->Add(backend.name, **session, headers_, reading_->request.body())) {
      session = Unavailable("the runtime closed the connection");
    }
    if (!session.ok()) {
      return Finish(Annotate(session.status(), fmt::format("runtime {}", backend.name)));
    }
  }
  reading_->request.Clear();
  LetRequest();
}

bool Call::HoldReply(size_t bytes) {
  if (!connection_.Hold(*this, bytes)) return false;
  held_ += bytes;
  return true;
}

void Call::OnReplies(const std::vector<h2::SliceQueue>& messages) {
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

bool Call::ReadsReply() const {
  return (LookedAt() && reading_->stages->reads_reply) ||
         (routing_ != nullptr && routing_->ReadsReply());
}

void Call::PassUnread(std::string_view why) {
  if (routing_ != nullptr) {
    return Finish(InvalidArgument("cannot tell which runtime {} is for: {}", method_.name, why));
  }
  connection_.relay().NoteUnread(method_, why);
  EndPipeline();
  if (!Forward(headers_, false)) return;
  SendRequest("");
  if (request_complete_) server_->SendEnd();
}

bool Call::Has(Operation operation, Field field) const {
  return CriHas(operation, field);
}

void Call::OnDecided(const Status& refusal, const Adjustment& adjustment) {
  const h2::FlushQueue::Scope scope(connection_.relay().flushes());
  if (!refusal.ok()) {
    Finish(refusal);
  } else if (adjustment.wide() != nullptr) {
    SendSpliced(adjustment);
  } else {
    SendWith(connection_.relay().suffix().For(method_.operation, adjustment.values));
  }
}

void Call::SendWith(std::string_view suffix) {
  if (tap_ != nullptr && !suffix.empty()) {
    tap_->OnRequestChanged(reading_->request.message(), suffix);
  }
  h2::HeaderBlock headers = headers_;
  if (!suffix.empty()) headers.Remove("content-length");
  reading_->stages->request.request().Close();
  if (!Forward(headers, false)) return;
  SendRequest(suffix);
  server_->SendEnd();
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
  request.Replace(*spliced);
  if (!HoldRequest()) return;
  h2::HeaderBlock headers = headers_;
  headers.Remove("content-length");
  reading_->stages->request.request().Close();
  if (!Forward(headers, false)) return;
  SendRequest("");
  server_->SendEnd();
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

bool Call::OnOutcome(const h2::HeaderBlock& trailers) {
  if (!LookedAt() && routing_ == nullptr && !Watched()) return true;
  const GrpcStatus status = ReadGrpcStatus(trailers);
  Report(status);
  return Settle(status);
}

bool Call::Watched() const {
  return tap_ != nullptr || connection_.relay().counts_calls();
}

void Call::Report(const GrpcStatus& status) {
  if (std::exchange(reported_, true)) return;
  if (tap_ != nullptr) tap_->OnEnd(status);
  const bool intercepted = reading_ != nullptr && reading_->stages.has_value();
  connection_.relay().CountCall(method_, intercepted, status.code);
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
  if (reading_->reply_is_end) {
    client_->SendHeaders(reading_->reply_end, true);
  } else {
    client_->SendEnd(reading_->reply_end);
  }
  // Else OnServerClosed does it.
  if (!server_->open()) client_->StopReceiving();
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

void Call::GiveUp() {
  collecting_ = false;
  EndPipeline();
  routing_.reset();
  fan_out_.reset();
  if (server_ != nullptr) server_->Reset(static_cast<uint32_t>(h2::ErrorCode::kCancel));
  if (reading_ == nullptr) return;
  reading_->request.Clear();
  LetRequest();
}

void Call::EndForMemory(std::string_view why) {
  if (ending_ > 0) return;
  const Status status = ResourceExhausted("{} was ended: {}", method_.name, why);
  connection_.relay().NoteEndForMemory(status);
  if (!client_->headers_sent()) {
    Finish(status);
  } else {
    // What the client has not taken so far is not kept for a status behind it.
    Report({.code = static_cast<int>(status.code()), .message = std::string(Message(status))});
    client_->Reset(static_cast<uint32_t>(h2::ErrorCode::kEnhanceYourCalm));
    GiveUp();
  }
  // A turn of the loop may end hundreds of calls before the first of them is closed.
  method_.path = method_.name = {};
  headers_ = {};
  ending_ = kCallCost;
  connection_.relay().AddEnding(ending_);
  connection_.Let(std::exchange(held_, 0));
}

void Call::OnSent(h2::Stream& stream, size_t count) {
  if (FromClient(stream)) {
    if (server_ != nullptr) server_->Consume(count);
    if (fan_out_ != nullptr) fan_out_->OnSent(client_->queued());
    return;
  }
  if (reading_ != nullptr) {
    const size_t paid = std::min(count, reading_->prepaid);
    reading_->prepaid -= paid;
    count -= paid;
    if (reading_->prepaid == 0 && reading_->held > 0) LetRequest();
  }
  client_->Consume(count);
}

void Call::OnClose(h2::Stream& stream, uint32_t error_code) {
  if (FromClient(stream)) {
    EndPipeline();
    routing_.reset();
    fan_out_.reset();
    collecting_ = false;
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
  // What the stage that holds the reply lets go ends the call.
  if (reading_ != nullptr && reading_->holds_reply()) return;
  if (client_->ended()) {
    client_->StopReceiving();
    return;
  }
  // The stream ended without a status, so nobody knows what became of the call.
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
