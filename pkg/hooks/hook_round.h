// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "pkg/base/status.h"
#include "pkg/hooks/hook_stage.h"
#include "pkg/sys/lifetime.h"

namespace resmgr::hooks {

// One hook of one call: asks the servers one after the other. Destroying it ends the round without
// a result. Loop's thread only.
class HookRound {
 public:
  struct Steps {
    // Returns the serialized request for the next server.
    std::function<std::string()> request;
    // Takes a server's answer; an error is a failure of the server.
    std::function<Status(const HookServerSettings& server, const std::string& answer)> take;
    // OK: the changes so far count. An error refuses the call. Runs once, never inside Start, and
    // may destroy the round.
    std::function<void(const Status& refusal)> done;
  };

  // The stage outlives this object. There must be at least one server.
  HookRound(HookStage& stage, HookPoint point, HookStage::Servers servers, Steps steps);
  ~HookRound();
  HookRound(const HookRound&) = delete;
  HookRound& operator=(const HookRound&) = delete;

  void Start() { Ask(); }
  // No time is left: the server that is asked has failed, and the remaining ones are not asked.
  void Expire();

 private:
  void Ask();
  void OnAnswer(const StatusOr<std::string>& answer);
  void End(const Status& refusal);

  HookStage& stage_;
  const HookPoint point_;
  HookStage::Servers servers_;
  Steps steps_;
  size_t next_ = 0;
  Lifetime lifetime_;
};

}  // namespace resmgr::hooks
