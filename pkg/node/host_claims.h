// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "pkg/claims/claim.h"
#include "pkg/sys/event_loop.h"

namespace resmgr {

// The claims of the active brain, whichever that is: brains come and go with the policy. Under null
// nothing is reserved; what is released then is released as soon as there is a brain again. Each
// `done` runs once, also where a brain ends before. Loop's thread only.
class HostClaims final : public ClaimHolder {
 public:
  // nullptr: there is no brain.
  using Brain = std::function<ClaimHolder*()>;

  // Claims that are released under null, at most.
  static constexpr size_t kMostReleased = 4096;

  HostClaims(EventLoop& loop, Brain brain) : loop_(loop), brain_(std::move(brain)) {}

  void Reserve(const Claim& claim, std::function<void(StatusOr<ClaimGrant>)> done) override;
  void Release(const std::string& uid, std::function<void(Status)> done) override;
  std::vector<ClaimGrant> Held() const override;

  // Called when another policy may be active.
  void NotePolicy();
  bool has_brain() const { return brain_() != nullptr; }

 private:
  EventLoop& loop_;
  const Brain brain_;
  std::set<std::string> released_;  // under null
};

}  // namespace resmgr
