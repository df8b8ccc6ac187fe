// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "pkg/base/recycled.h"
#include "pkg/base/status.h"
#include "pkg/cri/call.h"
#include "pkg/cri/cri_request.h"
#include "pkg/cri/held_message.h"
#include "pkg/grpc/grpc_message.h"
#include "pkg/h2/header_block.h"
#include "pkg/pipeline/pipeline_call.h"

namespace resmgr {

// Included only by the parts of Call: call.cc and call_messages.cc.

// Bytes; runtimes themselves refuse longer messages (containerd and CRI-O take 16 MiB).
inline constexpr size_t kMaxIntercepted = size_t{16} * 1024 * 1024;
// Limit for a reply that stages read; they need only its id.
inline constexpr size_t kMaxHeldReply = size_t{64} * 1024;

struct Call::Reading : public Recycled<Reading> {
  // Not defaulted: `Reading()` would zero all members first, and the stages' part is large.
  Reading() {}  // NOLINT(modernize-use-equals-default)

  HeldMessage request{kMaxIntercepted};
  size_t prepaid = 0;           // request bytes whose window was opened before they were sent
  size_t held = 0;              // the request's part of Call::held_
  bool other_handlers = false;  // aliases in the request were replaced by the runtime's handlers
  HeldMessage reply{kMaxHeldReply};
  h2::HeaderBlock reply_headers;
  // The end of the reply while a stage holds it, and whether the reply has only this header block.
  h2::HeaderBlock reply_end;
  bool reply_is_end = false;

  // The stages' part, which uses the members above.
  struct Stages {
    Stages(Pipeline& pipeline, PipelineCall::Front& front, Operation operation)
        : reads_reply(RepliesTell(operation)), request(operation), call(pipeline, front) {}

    const bool reads_reply;
    CriRequest request;
    PipelineCall call;
  };
  std::optional<Stages> stages;

  bool holds_reply() const { return stages && stages->call.HoldsReply(); }
};

// Rewrites the messages of a passing body of gRPC. Compressed messages stay unchanged.
// Thread-compatible.
class BodyRewriter {
 public:
  // Bytes of one message: the limit of kubelets and runtimes.
  static constexpr size_t kMostOfMessage = size_t{16} * 1024 * 1024;
  // nullopt: the message stays unchanged.
  using Rewrite = std::function<std::optional<std::string>(std::string_view message)>;

  explicit BodyRewriter(Rewrite rewrite);
  // Takes the next bytes of the body. Returns the messages that they complete, rewritten and with
  // their prefixes. kResourceExhausted: a message is longer than kMostOfMessage; nothing may be fed
  // after that.
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

// A reply of one runtime whose messages are rewritten.
struct Call::Rewriting {
  explicit Rewriting(BodyRewriter::Rewrite rewrite) : body(std::move(rewrite)) {}

  BodyRewriter body;
  // `owed`: bytes for which the runtime's window must still be opened. `held`: counted bytes of the
  // incomplete message, and of messages that wait for the client.
  size_t owed = 0;
  size_t held = 0;
};

}  // namespace resmgr
