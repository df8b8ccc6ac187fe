// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "pkg/base/status.h"
#include "pkg/claims/claim.h"
#include "pkg/claims/held_claims.h"
#include "pkg/dra/claim_object.h"
#include "pkg/model/problem.h"
#include "pkg/resmgr/resource_manager.h"
#include "pkg/state/state_store.h"
#include "pkg/sys/event_loop.h"
#include "pkg/sys/lifetime.h"

namespace resmgr {

// The claims of the active brain; brains come and go with the policy. Under the null policy nothing
// is reserved, and a release removes the claim from the saved state, from which the next brain
// takes its claims. Each `done` passed to a brain runs once, even if the brain ends before. Loop's
// thread only.
class HostClaims final : public ClaimHolder {
 public:
  // nullptr: there is no brain.
  using Brain = std::function<ClaimHolder*()>;

  // `state` keeps the claims over restarts, and must outlive this object; nullptr: they are not
  // kept.
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
  Lifetime lifetime_;  // callbacks of the disk may come after this object's end
};

// Finds claims that hold CPUs here but do not exist in the API server any more. The kubelet asks
// for the release of claims in its own checkpoint; if that is lost, nothing else would ever release
// such a claim. They are problems for an administrator, and are released only by order: the kubelet
// may be about to ask. Findings are not kept over a restart. Loop's thread only.
class LostClaims {
 public:
  struct Options {
    EventLoop& loop;
    // The active brain; nullptr: there is none.
    std::function<ResourceManager*()> manager{};
    ClaimHolder& holder;
    // Reads the object from the API server. NotFound: it has no claim of this name; other errors
    // say nothing about the claim. `done` never runs after the end of LostClaims' owner.
    std::function<void(const dra::ClaimName& claim,
                       std::function<void(StatusOr<std::string>)> done)>
        get{};
    // How often one claim is compared. Claims that a running container carries are left out.
    std::chrono::milliseconds period{60'000};
  };

  // A claim is lost only after this many findings in a row: a single one may come between the end
  // of a pod and the kubelet's call.
  static constexpr int kLooks = 2;

  explicit LostClaims(Options options);

  // Problems for claims with findings at `kLooks` looks in a row.
  std::vector<Problem> problems() const;
  // Gives the CPUs of a claim back by order of an administrator; `what` is its UID or
  // NAMESPACE/NAME. Yields what it held.
  //   NotFound: no such claim holds CPUs
  //   InvalidArgument: several claims have this name
  //   FailedPrecondition: a container of it runs, or, without `force`, it is not among the problems
  void Release(const std::string& what, bool force, std::function<void(StatusOr<ClaimGrant>)> done);

 private:
  struct Finding {
    std::chrono::system_clock::time_point since{};
    std::string why{};
    int looks = 0;
  };

  void Look();
  void Answered(const std::string& uid, const StatusOr<std::string>& object);
  // Drops findings about claims that were released or are in use again.
  void ForgetOthers(const ResourceManager& manager);
  // The claim to compare next, nullptr if there is none: claims with a finding to confirm take
  // turns with the others.
  const HeldClaim* Next(const ResourceManager& manager) const;
  StatusOr<const HeldClaim*> Named(const ResourceManager& manager, const std::string& what) const;

  const Options options_;
  std::map<std::string, Finding> findings_;  // by uid
  std::string last_;                         // uid of the claim that was compared last
  bool asking_ = false;
  EventLoop::HandlePtr timer_;
  Lifetime lifetime_;
};

}  // namespace resmgr
