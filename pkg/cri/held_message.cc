// SPDX-License-Identifier: Apache-2.0
#include "pkg/cri/held_message.h"

#include <optional>
#include <utility>

#include "pkg/cri/grpc_message.h"

namespace resmgr {
namespace {

// What is larger costs less where it lies, also if the whole block is kept alive for it.
constexpr size_t kSmall = 2048;

}  // namespace

void HeldMessage::Add(const h2::Slice& data, h2::Scratch& scratch) {
  if (data.size() <= kSmall) {
    body_.AppendCopy(data.view(), scratch);
  } else {
    body_.Append(data);
  }
}

void HeldMessage::Clear() {
  body_.Clear();
  decompressed_ = false;
  if (!payload_.empty()) payload_ = std::string();
}

StatusOr<std::string_view> HeldMessage::Read(const h2::HeaderBlock& headers) {
  const auto slices = body_.slices();
  if (slices.size() == 1) {
    if (const auto payload = OnlyPlainMessage(slices.front().view())) return *payload;
  }
  if (!fits()) return InvalidArgument("it has more than {} bytes", limit_);
  int messages = 0;
  GrpcMessage message;
  GrpcMessageReader reader(limit_, [&](GrpcMessage read) {
    ++messages;
    message = std::move(read);
  });
  for (const h2::Slice& slice : slices)
    reader.Feed(slice.view());
  if (messages != 1 || !reader.complete()) return InvalidArgument("it is not one gRPC message");
  if (message.compressed) {
    RESMGR_ASSIGN_OR_RETURN(message.payload,
                            DecompressGrpc(message.payload, headers.Find("grpc-encoding"), limit_));
  }
  decompressed_ = message.compressed;
  payload_ = std::move(message.payload);
  return payload_;
}

void HeldMessage::MakeLonger(size_t count) {
  if (!decompressed_) {
    body_.Overwrite(EncodeGrpcPrefix(false, body_.size() - kGrpcPrefixSize + count));
    return;
  }
  body_.Clear();
  body_.Append(h2::Slice::Copy(EncodeGrpcPrefix(false, payload_.size() + count) + payload_));
}

}  // namespace resmgr
