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

// For the parts of Call alone: call.cc, call_request.cc and call_reply.cc.

// Above this the runtimes refuse a message themselves (containerd and CRI-O take 16 MiB).
inline constexpr size_t kMaxIntercepted = size_t{16} * 1024 * 1024;
// Of a reply that stages look at: an id.
inline constexpr size_t kMaxHeldReply = size_t{64} * 1024;

struct Call::Reading : public Recycled<Reading> {
  // Not defaulted: `Reading()` would zero all of it first, and the stages' part is large.
  Reading() {}  // NOLINT(modernize-use-equals-default)

  HeldMessage request{kMaxIntercepted};
  size_t prepaid = 0;           // request bytes whose window was opened before they were sent on
  size_t held = 0;              // of Call::held_, for the request
  bool other_handlers = false;  // than the client's are in the request
  HeldMessage reply{kMaxHeldReply};
  h2::HeaderBlock reply_headers;
  // The end of the reply, while a stage holds it, and whether that is all of it.
  h2::HeaderBlock reply_end;
  bool reply_is_end = false;

  // What stages do with it; uses all that is above.
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
