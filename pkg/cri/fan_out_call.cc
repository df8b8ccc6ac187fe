// SPDX-License-Identifier: Apache-2.0
#include "pkg/cri/fan_out_call.h"

#include <utility>

#include "pkg/grpc/grpc_message.h"

namespace resmgr {

namespace {

StatusCode CodeOfRuntime(int grpc_code) {
  constexpr int kLastCode = 16;
  return grpc_code > 0 && grpc_code <= kLastCode ? static_cast<StatusCode>(grpc_code)
                                                 : StatusCode::kUnknown;
}

h2::SliceQueue WithPrefix(std::string_view payload) {
  h2::SliceQueue message;
  message.Append(h2::Slice::Copy(EncodeGrpcPrefix(false, payload.size())));
  message.Append(h2::Slice::Copy(payload));
  return message;
}

// The period for checking whether a runtime hangs.
constexpr std::chrono::milliseconds kLook{100};

}  // namespace

// The call at one of the runtimes.
class FanOutCall::Branch final : public h2::StreamHandler {
 public:
  Branch(FanOutCall& call, size_t position, std::string_view name)
      : call_(call),
        position_(position),
        name_(name),
        reader_(kMostOfMessage,
                [this](GrpcMessage message) { arrived_.push_back(std::move(message)); }) {}

  Status Start(const StatusOr<h2::Session*>& session, const h2::HeaderBlock& headers,
               const h2::SliceQueue& body) {
    if (!session.ok()) return session.status();
    stream_ = (*session)->OpenStream(headers, false, *this);
    if (stream_ == nullptr) return Unavailable("the runtime closed the connection");
    for (const h2::Slice& slice : body.slices())
      stream_->SendData(slice);
    stream_->SendEnd();
    return OkStatus();
  }
  size_t position() const { return position_; }
  const std::string& name() const { return name_; }
  bool done() const { return done_; }
  // For a stream, called once in each period: whether the runtime has sent nothing in the last two
  // although there was room.
  bool silent() {
    if (std::exchange(heard_, false) || done_ || owed_ > 0) return asked_ = false;
    return std::exchange(asked_, true);
  }

  // The message of a finished unary call.
  const h2::SliceQueue& message() const { return body_; }
  // The message, or the failure, of a call with a Merge function.
  RuntimeReply reply() const { return {.status = failure_, .message = body_.ToString()}; }

  // Ends the branch without reporting its end. If `why` is OK, its reply is empty.
  void SetFailed(const Status& why) {
    done_ = true;
    failure_ = why;
    body_.Clear();
    if (stream_ != nullptr && stream_->open())
      stream_->Reset(static_cast<uint32_t>(h2::ErrorCode::kCancel));
  }

  void GiveBack() {
    if (stream_ != nullptr) stream_->Consume(std::exchange(owed_, 0));
  }

  void OnHeaders(h2::Stream&, const h2::HeaderBlock& headers, bool end) override {
    if (done_) return;
    answered_ = heard_ = true;
    if (end) OnTrailers(headers);
  }
  void OnData(h2::Stream& stream, const h2::Slice& data) override {
    if (done_) return stream.Consume(data.size());
    heard_ = true;
    if (!answered_) {
      Fail(Internal("sent a body without header fields before it"));
      return;
    }
    if (call_.options_.streams) {
      Feed(data);
      return;
    }
    stream.Consume(data.size());
    body_.Append(data);
    // The last statement, since it may end and destroy the call.
    (void)call_.client_.HoldReply(data.size());
  }
  void OnEnd(h2::Stream&, const h2::HeaderBlock& trailers) override {
    if (!done_) OnTrailers(trailers);
  }
  void OnSent(h2::Stream&, size_t) override {}
  void OnClose(h2::Stream&, uint32_t) override {
    if (!done_) Fail(Unavailable("the connection broke"));
  }

 private:
  void Feed(const h2::Slice& data) {
    owed_ += data.size();
    reader_.Feed(data.view());
    // Each Pass may end and destroy the call.
    for (const GrpcMessage& message : std::exchange(arrived_, {})) {
      if (!Pass(message)) return;
    }
    if (call_.waiting_ < kMostWaiting) GiveBack();
  }

  // Passes one message on; false: the call is over.
  bool Pass(const GrpcMessage& message) {
    if (message.compressed) return Fail(Compressed());
    if (message.truncated()) {
      return Fail(ResourceExhausted("sent a message of {} bytes", message.size));
    }
    const std::optional<std::string> own =
        call_.options_.edit ? call_.options_.edit(position_, message.payload) : std::nullopt;
    if (own && own->empty()) return true;
    const std::string_view payload = own ? std::string_view(*own) : message.payload;
    const h2::SliceQueue bytes = WithPrefix(payload);
    call_.waiting_ += bytes.size();
    return call_.client_.OnMessage(bytes);
  }

  void OnTrailers(const h2::HeaderBlock& trailers) {
    const GrpcStatus status = ReadGrpcStatus(trailers);
    Status whole =
        status.ok() ? CheckBody() : MakeStatus(CodeOfRuntime(status.code), status.message);
    // Without its events the client's stream would be a part of them.
    if (whole.ok() && call_.options_.endless) whole = Unavailable("ended its stream");
    if (whole.ok()) {
      done_ = true;
      call_.NoteEnd(*this, true);
      call_.OnBranchDone();
    } else {
      Fail(whole);
    }
  }

  Status CheckBody() {
    if (!call_.options_.streams) return TakePrefix();
    return reader_.complete() ? OkStatus() : Internal("ended its reply within a message");
  }

  // Removes the prefix, so that the body is the message.
  Status TakePrefix() {
    std::string prefix;
    for (const h2::Slice& slice : body_.slices()) {
      if (prefix.size() >= kGrpcPrefixSize) break;
      prefix += slice.view().substr(0, kGrpcPrefixSize - prefix.size());
    }
    if (prefix.size() < kGrpcPrefixSize || GrpcBodySize(prefix) != body_.size()) {
      return Internal("its reply is not one message");
    }
    if (prefix.front() != 0) return Compressed();
    body_.Drop(kGrpcPrefixSize);
    return OkStatus();
  }

  static Status Compressed() { return Internal("compressed its reply, which was not accepted"); }

  // Returns false, like Pass.
  bool Fail(const Status& why) {
    if (call_.options_.merge) {
      call_.NoteEnd(*this, false);
      SetFailed(why);
      call_.OnBranchDone();
    } else {
      done_ = true;
      call_.EndByBranch(*this, why);
    }
    return false;
  }

  FanOutCall& call_;
  const size_t position_;
  const std::string name_;
  bool answered_ = false;
  bool heard_ = false;  // for streams: something came since the last check
  bool asked_ = false;  // for streams: the last check found nothing
  bool done_ = false;
  Status failure_;            // set if failures are merged
  h2::SliceQueue body_;       // of a unary call
  GrpcMessageReader reader_;  // of a stream
  std::vector<GrpcMessage> arrived_;
  size_t owed_ = 0;  // bytes for Consume
  std::unique_ptr<h2::Stream> stream_;
};

FanOutCall::FanOutCall(EventLoop& loop, Client& client, Options options)
    : loop_(loop), client_(client), options_(std::move(options)) {}

FanOutCall::~FanOutCall() {
  if (failed_) return;
  for (const std::unique_ptr<Branch>& branch : branches_)
    if (!branch->done()) NoteEnd(*branch, false);
}

Status FanOutCall::Add(std::string_view name, const StatusOr<h2::Session*>& session,
                       const h2::HeaderBlock& headers, const h2::SliceQueue& body) {
  h2::HeaderBlock plain = headers;
  plain.Remove("grpc-accept-encoding");
  branches_.push_back(std::make_unique<Branch>(*this, branches_.size(), name));
  Branch& branch = *branches_.back();
  Status started = branch.Start(session, plain, body);
  if (started.ok()) return started;
  NoteEnd(branch, false);
  failed_ = !options_.merge;
  if (failed_) return Annotate(started, fmt::format("runtime {}", name));
  branch.SetFailed(started);
  ++done_;
  return OkStatus();
}

void FanOutCall::AddSettled(std::string_view name, const Status& status) {
  branches_.push_back(std::make_unique<Branch>(*this, branches_.size(), name));
  branches_.back()->SetFailed(status);
  ++done_;
}

void FanOutCall::AllAdded() {
  all_added_ = true;
  if (done_ == branches_.size()) return options_.merge ? EndMerged() : EndConcatenated();
  StartPatience();
}

void FanOutCall::StartPatience() {
  if (options_.endless) return;
  if (options_.streams) {
    look_ = loop_.Every(*options_.patience / 2, [this] { EndForSilence(); });
    return;
  }
  if (options_.patience) patience_ = loop_.After(*options_.patience, [this] { OnPatienceOver(); });
  if (!options_.merge || !options_.hangs) return;
  look_ = loop_.Every(kLook, [this] {
    TellSilent();
    GiveUpHanging();
  });
  GiveUpHanging();
}

void FanOutCall::TellSilent() {
  if (std::exchange(told_silent_, true) || !options_.silent) return;
  for (const std::unique_ptr<Branch>& branch : branches_)
    if (!branch->done()) options_.silent(branch->position());
}

Status FanOutCall::Silence() const {
  return Unavailable("no answer within {} ms", options_.patience->count());
}

void FanOutCall::EndForSilence() {
  for (const std::unique_ptr<Branch>& branch : branches_) {
    if (!branch->silent()) continue;
    return EndByBranch(*branch, Silence());
  }
}

void FanOutCall::EndByBranch(const Branch& branch, const Status& why) {
  failed_ = true;
  NoteEnd(branch, false);
  client_.OnFanOutEnd(Annotate(why, fmt::format("runtime {}", branch.name())));
}

void FanOutCall::GiveUp(Branch& branch, const Status& why) {
  NoteEnd(branch, false);
  branch.SetFailed(why);
  ++done_;
}

void FanOutCall::GiveUpHanging() {
  for (const std::unique_ptr<Branch>& branch : branches_) {
    if (!branch->done() && options_.hangs(branch->position()))
      GiveUp(*branch, Unavailable("it does not answer"));
  }
  if (done_ == branches_.size()) EndMerged();
}

void FanOutCall::OnSent(size_t waiting) {
  waiting_ = waiting;
  if (waiting_ >= kMostWaiting) return;
  for (const std::unique_ptr<Branch>& branch : branches_)
    branch->GiveBack();
}

void FanOutCall::NoteEnd(const Branch& branch, bool ok) {
  if (options_.ended) options_.ended(branch.position(), ok);
}

void FanOutCall::OnBranchDone() {
  if (++done_ < branches_.size() || !all_added_) return;
  if (options_.streams) return client_.OnFanOutEnd(OkStatus());
  if (options_.merge) return EndMerged();
  EndConcatenated();
}

void FanOutCall::OnPatienceOver() {
  for (const std::unique_ptr<Branch>& branch : branches_) {
    if (branch->done()) continue;
    if (!options_.merge) return EndByBranch(*branch, Silence());
    GiveUp(*branch, Silence());
  }
  EndMerged();
}

void FanOutCall::EndMerged() {
  std::vector<RuntimeReply> replies;
  for (const std::unique_ptr<Branch>& branch : branches_)
    replies.push_back(branch->reply());
  const StatusOr<std::string> merged = options_.merge(replies);
  if (!merged.ok()) return client_.OnFanOutEnd(merged.status());
  if (client_.OnMessage(WithPrefix(*merged))) client_.OnFanOutEnd(OkStatus());
}

void FanOutCall::EndConcatenated() {
  std::vector<h2::SliceQueue> messages;
  for (const std::unique_ptr<Branch>& branch : branches_)
    messages.push_back(branch->message());
  client_.OnReplies(messages);
  size_t size = 0;
  for (const h2::SliceQueue& message : messages)
    size += message.size();
  h2::SliceQueue merged;
  merged.Append(h2::Slice::Copy(EncodeGrpcPrefix(false, size)));
  for (const h2::SliceQueue& message : messages) {
    for (const h2::Slice& slice : message.slices())
      merged.Append(slice);
  }
  if (client_.OnMessage(merged)) client_.OnFanOutEnd(OkStatus());
}

}  // namespace resmgr
