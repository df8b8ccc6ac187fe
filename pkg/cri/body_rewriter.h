// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "pkg/base/status.h"
#include "pkg/grpc/grpc_message.h"

namespace resmgr {

// Rewrites the messages of a passing body of gRPC. Compressed messages stay unchanged.
// Thread-compatible.
class BodyRewriter {
 public:
  // Bytes of one message: the limit of kubelets and runtimes.
  static constexpr size_t kMostOfMessage = size_t{16} * 1024 * 1024;
  // nullopt: the message stays unchanged.
  using Rewrite = std::function<std::optional<std::string>(std::string_view message)>;

  explicit BodyRewriter(Rewrite rewrite);
  // Takes bytes of the old body and returns those of the new one that follow from them: whole
  // messages. kResourceExhausted: a message is longer than kMostOfMessage; nothing may be fed after
  // that.
  StatusOr<std::string> Feed(std::string_view bytes);
  // Whether the body so far ends with a whole message.
  bool complete() const { return reader_.complete(); }
  // Bytes of memory of an incomplete message.
  size_t held() const { return reader_.held(); }

 private:
  void Take(const GrpcMessage& message);

  const Rewrite rewrite_;
  std::string out_;
  Status failure_;
  GrpcMessageReader reader_;
};

}  // namespace resmgr
