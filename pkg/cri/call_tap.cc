// SPDX-License-Identifier: Apache-2.0
#include "pkg/cri/call_tap.h"

#include <chrono>
#include <utility>

namespace resmgr {

namespace {

// Of one message: enough for everything but the lists of a very full node.
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
           .wall_start = std::chrono::system_clock::now()},
      messages_(messages),
      requests_(kMaxCollected,
                [this](GrpcMessage message) {
                  dumper_.OnRequest(ref_, ToPayload(std::move(message), request_encoding_));
                }),
      replies_(kMaxCollected, [this](GrpcMessage message) {
        dumper_.OnReply(ref_, ToPayload(std::move(message), reply_encoding_));
      }) {
  if (!messages_) dumper_.OnRequest(ref_, dump::Payload());
}

void CallTap::OnRequestHeaders(const h2::HeaderBlock& headers) {
  request_encoding_ = headers.Find("grpc-encoding");
}

void CallTap::OnRequestData(std::string_view data) {
  if (messages_) requests_.Feed(data);
}

void CallTap::OnReplyHeaders(const h2::HeaderBlock& headers) {
  reply_encoding_ = headers.Find("grpc-encoding");
}

void CallTap::OnReplyData(std::string_view data) {
  if (messages_) replies_.Feed(data);
}

void CallTap::OnEnd(const GrpcStatus& status) {
  dumper_.OnEnd(ref_, status.code, status.message);
}

dump::Payload CallTap::ToPayload(GrpcMessage message, const std::string& encoding) const {
  if (message.compressed && !message.truncated()) {
    auto plain = DecompressGrpc(message.payload, encoding, kMaxCollected);
    if (plain.ok()) return dump::Payload(*std::move(plain));
  }
  dump::Payload payload(std::move(message.payload), message.size);
  payload.compressed = message.compressed;
  return payload;
}

}  // namespace resmgr
