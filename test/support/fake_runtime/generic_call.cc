// SPDX-License-Identifier: Apache-2.0
#include "test/support/fake_runtime/generic_call.h"

namespace resmgr::test {

namespace {

// Messages that may wait to be written before reading pauses.
constexpr size_t kWriteQueueLimit = 8;

}  // namespace

void GenericServer::Call::Request() {
  // The end of a call that never came is not reported, so it does not count as pending yet.
  server_.requested_ = true;
  context_.AsyncNotifyWhenDone(&ended_tag_);
  server_.service_.RequestCall(&context_, &stream_, server_.queue_.get(), server_.queue_.get(),
                               Start(requested_));
}

void* GenericServer::Call::Start(Tag& tag) {
  if (pending_++ == 0) self_ = shared_from_this();
  return &tag;
}

void GenericServer::Call::Completed(void (Call::*handler)(bool), bool ok) {
  const std::shared_ptr<Call> keep = self_;
  (this->*handler)(ok);
  if (--pending_ == 0) self_.reset();
}

void GenericServer::Call::OnRequested(bool ok) {
  server_.requested_ = false;
  if (!ok) return;
  ++pending_;  // the end is reported from here on
  server_.calls_.insert(shared_from_this());
  std::make_shared<Call>(server_)->Request();
  for (const auto& [key, value] : context_.client_metadata()) {
    metadata_.emplace(std::string(key.data(), key.size()), std::string(value.data(), value.size()));
  }
  deadline_ = context_.deadline();
  server_.handler_.OnCall(shared_from_this());
  MaybeRead();
}

void GenericServer::Call::MaybeRead() {
  if (reading_ || half_closed_ || ended_ || outgoing_.size() > kWriteQueueLimit) return;
  reading_ = true;
  stream_.Read(&incoming_, Start(read_));
}

void GenericServer::Call::OnRead(bool ok) {
  reading_ = false;
  if (ok) {
    const grpc::ByteBuffer message = incoming_;
    incoming_.Clear();
    server_.handler_.OnMessage(shared_from_this(), message);
    MaybeRead();
    return;
  }
  half_closed_ = true;
  // A failed read of a call that is already cancelled is not the client's half-close.
  if (!ended_) server_.handler_.OnHalfClosed(shared_from_this());
}

void GenericServer::Call::SendHeaders() {
  if (writing_ || ended_ || finish_sent_) return;
  writing_ = true;
  stream_.SendInitialMetadata(Start(written_));
}

void GenericServer::Call::AddHeader(const std::string& key, const std::string& value) {
  context_.AddInitialMetadata(key, value);
}

void GenericServer::Call::AddTrailer(const std::string& key, const std::string& value) {
  context_.AddTrailingMetadata(key, value);
}

void GenericServer::Call::UseGzip() {
  context_.set_compression_algorithm(GRPC_COMPRESS_GZIP);
}

void GenericServer::Call::Write(grpc::ByteBuffer message, int times) {
  if (ended_ || finish_wanted_ || times < 1) return;
  outgoing_.push_back({std::move(message), times});
  Pump();
}

void GenericServer::Call::WriteLast(grpc::ByteBuffer message, grpc::Status status) {
  if (ended_ || finish_wanted_) return;
  outgoing_.push_back({std::move(message), 1});
  Finish(std::move(status));
}

void GenericServer::Call::Finish(grpc::Status status) {
  if (ended_ || finish_wanted_) return;
  finish_wanted_ = true;
  status_ = std::move(status);
  Pump();
}

void GenericServer::Call::Pump() {
  if (writing_ || finish_sent_ || ended_) return;
  if (outgoing_.empty()) {
    if (!finish_wanted_) return;
    finish_sent_ = true;
    stream_.Finish(status_, Start(finished_));
    return;
  }
  Outgoing& next = outgoing_.front();
  const grpc::ByteBuffer message = next.message;
  if (--next.times == 0) outgoing_.pop_front();
  if (outgoing_.empty() && finish_wanted_) {
    finish_sent_ = true;
    stream_.WriteAndFinish(message, grpc::WriteOptions(), status_, Start(finished_));
    return;
  }
  writing_ = true;
  stream_.Write(message, Start(written_));
}

void GenericServer::Call::OnWritten(bool ok) {
  writing_ = false;
  if (!ok) outgoing_.clear();
  Pump();
  MaybeRead();
}

void GenericServer::Call::OnFinished(bool /*ok*/) {}

void GenericServer::Call::OnEnded(bool /*ok*/) {
  ended_ = true;
  outgoing_.clear();
  server_.handler_.OnEnd(shared_from_this(), context_.IsCancelled());
  server_.calls_.erase(shared_from_this());
}

}  // namespace resmgr::test
