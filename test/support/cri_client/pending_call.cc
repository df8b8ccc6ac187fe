// SPDX-License-Identifier: Apache-2.0
#include "test/support/cri_client/pending_call.h"

#include "test/support/byte_buffer.h"

namespace resmgr::test {

namespace {

// The operation that a completion belongs to; the queue carries it as a pointer.
enum Operation : char { kOpen, kRead, kWrite, kFinish, kOperations };
constexpr char kTags[kOperations] = {};

void* TagOf(Operation operation) {
  return const_cast<char*>(&kTags[operation]);
}

Metadata Copy(const std::multimap<grpc::string_ref, grpc::string_ref>& from) {
  Metadata to;
  for (const auto& [key, value] : from) {
    to.emplace(std::string(key.data(), key.size()), std::string(value.data(), value.size()));
  }
  return to;
}

}  // namespace

PendingCall::PendingCall(const std::shared_ptr<grpc::Channel>& channel, const std::string& path,
                         const CallOptions& options)
    : stub_(channel), read_limit_(options.pause_after) {
  for (const auto& [key, value] : options.metadata)
    context_.AddMetadata(key, value);
  context_.set_deadline(std::chrono::system_clock::now() + options.timeout);
  if (options.gzip) context_.set_compression_algorithm(GRPC_COMPRESS_GZIP);
  stream_ = stub_.PrepareCall(&context_, path, &queue_);
  stream_->StartCall(TagOf(kOpen));
  thread_ = std::thread([this] { Run(); });
}

PendingCall::~PendingCall() {
  context_.TryCancel();
  ResumeReading();
  thread_.join();
}

bool PendingCall::Send(std::string_view message) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return (open_ && !writing_) || reads_over_; });
  if (reads_over_ || write_failed_) return false;
  writing_ = true;
  const grpc::Slice slice(message.data(), message.size());
  stream_->Write(grpc::ByteBuffer(&slice, 1), TagOf(kWrite));
  changed_.wait(lock, [this] { return !writing_; });
  return !write_failed_;
}

void PendingCall::HalfClose() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return (open_ && !writing_) || reads_over_; });
  if (reads_over_ || write_failed_) return;
  writing_ = true;
  stream_->WritesDone(TagOf(kWrite));
  changed_.wait(lock, [this] { return !writing_; });
}

void PendingCall::ResumeReading() {
  const std::lock_guard lock(mutex_);
  read_limit_ = -1;
  if (paused_) ReadNext();
}

bool PendingCall::WaitForMessages(size_t count, std::chrono::milliseconds timeout) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, timeout, [&] { return result_.messages.size() >= count || done_; });
  return result_.messages.size() >= count;
}

std::optional<CallResult> PendingCall::Wait(std::chrono::milliseconds timeout) {
  std::unique_lock lock(mutex_);
  if (!changed_.wait_for(lock, timeout, [this] { return done_; })) return std::nullopt;
  return result_;
}

void PendingCall::ReadNext() {
  paused_ = read_limit_ == 0;
  if (paused_) return;
  if (read_limit_ > 0) --read_limit_;
  stream_->Read(&incoming_, TagOf(kRead));
}

void PendingCall::OnOpened(bool ok) {
  open_ = ok;
  if (ok) return ReadNext();
  reads_over_ = true;
  stream_->Finish(&result_.status, TagOf(kFinish));
}

void PendingCall::OnRead(bool ok) {
  if (ok) {
    result_.messages.push_back(ToBytes(incoming_));
    return ReadNext();
  }
  reads_over_ = true;
  stream_->Finish(&result_.status, TagOf(kFinish));
}

void PendingCall::CollectResult() {
  result_.headers = Copy(context_.GetServerInitialMetadata());
  result_.trailers = Copy(context_.GetServerTrailingMetadata());
}

void PendingCall::Run() {
  void* tag = nullptr;
  bool ok = false;
  while (queue_.Next(&tag, &ok)) {
    const std::lock_guard lock(mutex_);
    if (tag == TagOf(kOpen)) OnOpened(ok);
    if (tag == TagOf(kRead)) OnRead(ok);
    if (tag == TagOf(kFinish)) CollectResult();
    if (tag == TagOf(kFinish)) done_ = true;
    if (tag == TagOf(kWrite)) {
      writing_ = false;
      write_failed_ = !ok;
    }
    changed_.notify_all();
    if (done_ && !writing_) queue_.Shutdown();
  }
}

}  // namespace resmgr::test
