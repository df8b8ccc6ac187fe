// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "pkg/claims/claim.h"
#include "pkg/state/state_store.h"
#include "pkg/sys/event_loop.h"
#include "pkg/sys/lifetime.h"

namespace resmgr {

// The claims of the active brain, whichever that is: brains come and go with the policy. Under null
// nothing is reserved, and what is released then is taken out of the state, from which the next
// brain takes claims over. Each `done` of a brain runs once, also where the brain ends before.
// Loop's thread only.
class HostClaims final : public ClaimHolder {
 public:
  // nullptr: there is no brain.
  using Brain = std::function<ClaimHolder*()>;

  // `state` keeps the claims over restarts, and must outlive this; nullptr: nothing does.
  HostClaims(EventLoop& loop, Brain brain, StateStore* state = nullptr)
      : loop_(loop), brain_(std::move(brain)), state_(state) {}

  void Reserve(const Claim& claim, std::function<void(StatusOr<ClaimGrant>)> done) override;
  void Release(const std::string& uid, std::function<void(Status)> done) override;
  std::vector<ClaimGrant> Held() const override;

  bool has_brain() const { return brain_() != nullptr; }

 private:
  EventLoop& loop_;
  const Brain brain_;
  StateStore* const state_;
  Lifetime lifetime_;  // the disk's answers may come after this is gone
};

}  // namespace resmgr
