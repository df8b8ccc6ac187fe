// SPDX-License-Identifier: Apache-2.0
#include "pkg/cri/call.h"

#include <utility>

#include "pkg/cri/connection.h"
#include "pkg/cri/relay.h"
#include "pkg/h2/limits.h"

namespace resmgr {

namespace {

// Above this the runtimes refuse a message themselves (containerd and CRI-O take 16 MiB).
constexpr size_t kMaxIntercepted = size_t{16} * 1024 * 1024;
// Of an intercepted call's reply: an id.
constexpr size_t kMaxReply = size_t{64} * 1024;
constexpr int kCancelled = 1;

}  // namespace

Call::Call(Connection& connection, std::unique_ptr<h2::Stream> client, h2::HeaderBlock headers)
    : connection_(connection),
      client_(std::move(client)),
      headers_(std::move(headers)),
      method_(connection.Classify(headers_)) {
  client_->set_handler(this);
}

Call::~Call() {
  connection_.Let(request_.size());
  if (!reported_ && Watched()) Report({.code = kCancelled, .message = "the call was given up"});
}

void Call::Start(bool end) {
  Relay& relay = connection_.relay();
  if (method_.operation != Operation::kOther && relay.interceptor() != nullptr) {
    interception_ = relay.interceptor()->Begin(method_);
  }
  intercepted_ = interception_ != nullptr;
  tap_ = relay.MakeTap(method_, intercepted_);
  if (tap_ != nullptr) tap_->OnRequestHeaders(headers_);
  request_complete_ = end;
  if (interception_ == nullptr || end) {
    interception_.reset();
    Forward(headers_, end);
    return;
  }
  collecting_ = true;
}

bool Call::Forward(const h2::HeaderBlock& headers, bool end) {
  StatusOr<h2::Session*> session = connection_.SessionFor(method_);
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
    OnRequestData(data);
    return;
  }
  if (tap_ != nullptr) tap_->OnReplyData(data.view());
  if (reply_reader_.has_value()) reply_reader_->Feed(data.view());
  client_->SendData(data);
}

void Call::OnRequestData(const h2::Slice& data) {
  if (!collecting_) {
    if (server_ != nullptr) server_->SendData(data);
    return;
  }
  client_->Consume(data.size());
  if (!connection_.Hold(data.size())) {
    Finish(ResourceExhausted("too many large requests at once on this connection"));
    return;
  }
  // A small piece must not keep the whole block alive that it was read into.
  if (data.size() <= h2::kCopyBelow) {
    request_.AppendCopy(data.view(), connection_.scratch());
  } else {
    request_.Append(data);
  }
  if (request_.size() > kMaxIntercepted) PassUnread("it is larger than any runtime takes");
}

void Call::OnEnd(h2::Stream& stream, const h2::HeaderBlock& trailers) {
  if (!FromClient(stream)) {
    OnOutcome(trailers);
    client_->SendEnd(trailers);
    return;
  }
  request_complete_ = true;
  if (collecting_) {
    Decide();
  } else if (server_ != nullptr) {
    server_->SendEnd(trailers);
  }
}

void Call::Decide() {
  const auto slices = request_.slices();
  if (slices.size() == 1) {
    // Mostly it lies in one piece and is read where it is.
    if (const auto payload = OnlyPlainMessage(slices.front().view())) return Ask(*payload);
  }
  bool one_message = false;
  GrpcMessage message;
  GrpcMessageReader reader(kMaxIntercepted, [&](GrpcMessage read) {
    one_message = message.size == 0 && message.payload.empty() && !one_message;
    message = std::move(read);
  });
  for (const h2::Slice& slice : slices)
    reader.Feed(slice.view());
  if (!one_message || !reader.complete()) {
    PassUnread("it is not one gRPC message");
    return;
  }
  decompressed_ = message.compressed;
  if (message.compressed) {
    auto payload = DecompressGrpc(message.payload, headers_.Find("grpc-encoding"), kMaxIntercepted);
    if (!payload.ok()) {
      PassUnread(Message(payload.status()));
      return;
    }
    message.payload = *std::move(payload);
  }
  message_ = std::move(message.payload);
  Ask(message_);
}

void Call::Ask(std::string_view payload) {
  interception_->OnRequest(payload,
                           [this](const Interception::Verdict& verdict) { OnVerdict(verdict); });
}

void Call::PassUnread(std::string_view why) {
  connection_.relay().NoteUnread(method_, why);
  interception_.reset();
  if (!Forward(headers_, false)) return;
  SendRequest("");
  if (request_complete_) server_->SendEnd();
}

void Call::OnVerdict(const Interception::Verdict& verdict) {
  const h2::FlushQueue::Scope scope(connection_.relay().flushes());
  if (!verdict.refusal.ok()) {
    interception_.reset();
    Finish(verdict.refusal);
    return;
  }
  h2::HeaderBlock headers = headers_;
  if (!verdict.suffix.empty()) headers.Remove("content-length");
  if (!Forward(headers, false)) return;
  reply_reader_.emplace(kMaxReply, [this](GrpcMessage message) { reply_ = std::move(message); });
  SendRequest(verdict.suffix);
  server_->SendEnd();
}

void Call::SendRequest(const std::string& suffix) {
  collecting_ = false;
  connection_.Let(request_.size());
  if (!suffix.empty()) {
    const size_t payload = decompressed_ ? message_.size() : request_.size() - kGrpcPrefixSize;
    const std::string prefix = EncodeGrpcPrefix(false, payload + suffix.size());
    if (decompressed_) {
      request_.Clear();
      request_.Append(h2::Slice::Copy(prefix + message_));
    } else {
      request_.Overwrite(prefix);
    }
  }
  prepaid_ += request_.size() + suffix.size();
  for (const h2::Slice& slice : request_.slices())
    server_->SendData(slice);
  if (!suffix.empty()) server_->SendData(connection_.scratch().Copy(suffix));
  request_.Clear();
  message_ = {};
}

void Call::OnHeaders(h2::Stream&, const h2::HeaderBlock& headers, bool end) {
  if (end) {
    OnOutcome(headers);
  } else {
    if (reply_reader_.has_value()) reply_encoding_ = headers.Find("grpc-encoding");
    if (tap_ != nullptr) tap_->OnReplyHeaders(headers);
  }
  client_->SendHeaders(headers, end);
}

void Call::OnOutcome(const h2::HeaderBlock& trailers) {
  if (interception_ == nullptr && !Watched()) return;
  const GrpcStatus status = ReadGrpcStatus(trailers);
  Report(status);
  Settle(status);
}

bool Call::Watched() const {
  return tap_ != nullptr || connection_.relay().counts_calls();
}

void Call::Report(const GrpcStatus& status) {
  if (std::exchange(reported_, true)) return;
  if (tap_ != nullptr) tap_->OnEnd(status);
  connection_.relay().CountCall(method_, intercepted_, status.code);
}

void Call::Settle(const GrpcStatus& status) {
  if (interception_ == nullptr) return;
  std::string payload;
  if (status.ok() && !reply_.truncated()) {
    payload = std::move(reply_.payload);
    if (reply_.compressed) {
      payload = DecompressGrpc(payload, reply_encoding_, kMaxReply).value_or("");
    }
  }
  interception_->OnReply(status, payload);
  interception_.reset();
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
  collecting_ = false;
  interception_.reset();
  if (server_ != nullptr) server_->Reset(static_cast<uint32_t>(h2::ErrorCode::kCancel));
}

void Call::OnSent(h2::Stream& stream, size_t count) {
  if (FromClient(stream)) {
    if (server_ != nullptr) server_->Consume(count);
    return;
  }
  const size_t paid = std::min(count, prepaid_);
  prepaid_ -= paid;
  client_->Consume(count - paid);
}

void Call::OnClose(h2::Stream& stream, uint32_t error_code) {
  if (FromClient(stream)) {
    interception_.reset();
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
  if (client_->ended()) {
    client_->StopReceiving();
    return;
  }
  // The stream ended without a status, so nobody knows what became of the call.
  interception_.reset();
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
