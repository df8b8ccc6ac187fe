// SPDX-License-Identifier: Apache-2.0
#include "pkg/cri/call_observers.h"

namespace resmgr {
namespace {

// Bytes of one message: enough for everything except the lists of a very full node.
constexpr size_t kMaxCollected = size_t{4} * 1024 * 1024;

}  // namespace

std::unique_ptr<CallTap> CallTap::Create(dump::Dumper& dumper, uint64_t id, const Method& method,
                                         bool intercepted) {
  const dump::Interest interest = dumper.WantsMethod(method.path);
  if (interest == dump::Interest::kNone) return nullptr;
  return std::unique_ptr<CallTap>(
      new CallTap(dumper, id, method, intercepted, interest == dump::Interest::kMessages));
}

CallTap::CallTap(dump::Dumper& dumper, uint64_t id, const Method& method, bool intercepted,
                 bool messages)
    : dumper_(dumper),
      path_(method.path),
      ref_{.id = id,
           .path = path_,
           .intercepted = intercepted,
           .start = std::chrono::steady_clock::now(),
           .wall_start = std::chrono::system_clock::now()} {
  if (!messages) {
    dumper_.OnRequest(ref_, dump::Payload());
    return;
  }
  requests_.emplace(kMaxCollected, [this](GrpcMessage message) {
    Release(*requests_);
    request_reported_ = true;
    dumper_.OnRequest(ref_, ToPayload(std::move(message), request_encoding_));
  });
  replies_.emplace(kMaxCollected, [this](GrpcMessage message) {
    Release(*replies_);
    dumper_.OnReply(ref_, ToPayload(std::move(message), reply_encoding_));
  });
}

CallTap::~CallTap() {
  if (requests_) Release(*requests_);
  if (replies_) Release(*replies_);
}

void CallTap::OnRequestHeaders(const h2::HeaderBlock& headers) {
  request_encoding_ = headers.Find("grpc-encoding");
}

void CallTap::OnRequestData(std::string_view data) {
  if (requests_) Collect(*requests_, data);
}

void CallTap::OnRequestChanged(std::string_view before, std::string_view suffix) {
  if (!requests_ || before.size() > kMaxCollected) return;
  OnRequestReplaced(before, std::string(before).append(suffix));
}

void CallTap::OnRequestReplaced(std::string_view before, std::string after) {
  if (!requests_ || before.size() > kMaxCollected) return;
  dumper_.OnChanged(ref_, dump::Payload(std::string(before)), std::move(after));
}

void CallTap::OnReplyHeaders(const h2::HeaderBlock& headers) {
  reply_encoding_ = headers.Find("grpc-encoding");
}

void CallTap::OnReplyData(std::string_view data) {
  if (replies_) Collect(*replies_, data);
}

void CallTap::OnEnd(const GrpcStatus& status) {
  dumper_.OnEnd(ref_, status.code, status.message);
}

void CallTap::Collect(Collection& collection, std::string_view data) {
  collection.reader.Feed(data);
  const size_t held = collection.reader.held();
  if (held <= collection.reserved) return;
  if (!dumper_.Reserve(held - collection.reserved)) {
    GiveUp();
    return;
  }
  collection.reserved = held;
}

void CallTap::Release(Collection& collection) {
  if (collection.reserved > 0) dumper_.Release(std::exchange(collection.reserved, 0));
}

void CallTap::GiveUp() {
  dumper_.GiveUp(ref_, request_reported_);
  Release(*requests_);
  Release(*replies_);
  requests_.reset();
  replies_.reset();
}

dump::Payload CallTap::ToPayload(GrpcMessage message, const std::string& encoding) {
  dump::Payload payload(std::move(message.payload), message.size);
  payload.compressed = message.compressed;
  if (message.compressed) payload.encoding = encoding;
  return payload;
}

StatusOr<std::string> CallTap::Decompress(const dump::Payload& payload) {
  return DecompressGrpc(payload.bytes, payload.encoding, kMaxCollected);
}

CallCounts::CallCounts(Metrics* metrics) : metrics_(metrics) {
  // The last counter is that of unknown methods.
  if (on()) counters_.resize(KnownMethodPaths().size() + 1);
}

void CallCounts::End(const Method& method, bool intercepted, int grpc_code,
                     const CallClock& clock) {
  if (!on()) return;
  CallCounter*& counter = counters_[method.place][intercepted ? 1 : 0];
  if (counter == nullptr) {
    counter = &metrics_->Calls(method.path, intercepted ? Metrics::CallKind::kIntercepted
                                                        : Metrics::CallKind::kPassthrough);
  }
  counter->Count(grpc_code);
  if (!clock.begun()) return;
  metrics_->CountInFlight(-1);
  // The time of a call that lasts as long as its client listens says nothing about speed.
  if (method.endless) return;
  const CallClock::Spent spent = clock.Read();
  counter->Took(spent.ours, spent.runtime);
}

}  // namespace resmgr
