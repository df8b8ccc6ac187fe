// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>

#include "pkg/base/recycled.h"
#include "pkg/cri/call.h"
#include "pkg/cri/cri_request.h"
#include "pkg/cri/held_message.h"
#include "pkg/h2/header_block.h"
#include "pkg/pipeline/pipeline_call.h"

namespace resmgr {

// Only for the parts of Call: call.cc, call_request.cc and call_reply.cc.

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

}  // namespace resmgr
