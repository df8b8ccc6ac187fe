// SPDX-License-Identifier: Apache-2.0
#include "pkg/cri/body_rewriter.h"

#include <utility>

namespace resmgr {

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

}  // namespace resmgr
