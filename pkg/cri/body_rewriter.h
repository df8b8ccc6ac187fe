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

// A body of gRPC messages that passes, each of which may become another one. Compressed messages
// stay as they are. Thread-compatible.
class BodyRewriter {
 public:
  // Of one message: the most that kubelets and runtimes take.
  static constexpr size_t kMostOfMessage = size_t{16} * 1024 * 1024;
  // nullopt: the message stays.
  using Rewrite = std::function<std::optional<std::string>(std::string_view message)>;

  explicit BodyRewriter(Rewrite rewrite);
  // What follows of the new body now that these bytes of the old one have come: whole messages.
  // ResourceExhausted: a message is longer than kMostOfMessage; nothing may be fed after that.
  StatusOr<std::string> Feed(std::string_view bytes);
  // Whether the body so far ends with a whole message.
  bool complete() const { return reader_.complete(); }
  // The memory that the message takes of which more is to come.
  size_t held() const { return reader_.held(); }

 private:
  void Take(const GrpcMessage& message);

  const Rewrite rewrite_;
  std::string out_;
  Status failure_;
  GrpcMessageReader reader_;
};

}  // namespace resmgr
