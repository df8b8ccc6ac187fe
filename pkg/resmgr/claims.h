// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "pkg/claims/claim.h"
#include "pkg/claims/held_claims.h"
#include "pkg/resmgr/brain.h"
#include "pkg/resmgr/carrier_notes.h"
#include "pkg/resmgr/policy_changes.h"
#include "pkg/state/state_store.h"
#include "pkg/sys/event_loop.h"
#include "pkg/sys/lifetime.h"

namespace resmgr {

// Claims that hold CPUs on this node: reserved by the policy, saved before the reply, and taken
// over by the next daemon before it lists any container. A reservation that is not complete in time
// is taken back. Loop's thread only.
class Claims final : public ClaimHolder {
 public:
  // Takes over the claims in `state`, which may be nullptr. All references must outlive this
  // object.
  Claims(Brain& brain, const PolicyChanges& changes, EventLoop& loop, StateStore* state);

  void Reserve(const Claim& claim, std::function<void(StatusOr<ClaimGrant>)> done) override;
  void Release(const std::string& uid, std::function<void(Status)> done) override;
  std::vector<ClaimGrant> Held() const override;

  // Finds the claims that new containers of a list carry. `without_notes`: those of them without
  // saved data.
  void FindCarriers(std::span<const ContainerKey> adopted,
                    std::span<const ContainerKey> without_notes);
  // Called when containers may have left CPUs, when claims may have other CPUs than those that are
  // saved, or when other containers may carry them.
  void Examine();
  // Reservations that wait for containers are taken back.
  void OnDisconnected();

 private:
  using Reserved = std::function<void(StatusOr<ClaimGrant>)>;
  // A reservation or a release that was not answered yet.
  struct Wait {
    std::string uid;  // empty for a release
    std::vector<Reserved> done{};
    bool written = false;
    EventLoop::HandlePtr timer{};
  };

  void TakeOverKept();
  // Logs claims that have other CPUs than they had in `before`; false: there is none.
  bool LogOtherCpus(const HeldClaims& before);
  void ReserveNow(const Claim& claim, Reserved done);
  void ReserveHeld(const HeldClaim& held, const Claim& claim, Reserved done);
  void Add(const std::string& uid, Reserved done);
  // Unavailable while the state cannot be written: a call that waited for the disk would outlast
  // its client.
  Status CheckDisk() const;
  void OnWritten(uint64_t number);
  void OnTimeout(uint64_t number);
  void Finish(uint64_t number, const StatusOr<ClaimGrant>& result);
  // Ends a wait without success. A reservation that was never answered is given back.
  void TakeBack(uint64_t number, const Status& why);
  // Releases the claim's CPUs, and sends updates to the containers that get them.
  Status GiveBack(const std::string& uid);
  // Names a container that may still run on the claim's CPUs without carrying it; empty when none
  // does.
  std::string InTheWay(const HeldClaim& held) const;
  // Saves the held claims and informs observers.
  void Save();
  void Keep();

  Brain& brain_;
  const PolicyChanges& changes_;
  EventLoop& loop_;
  StateStore* const state_;
  const std::chrono::milliseconds timeout_;  // for containers to leave the CPUs, and for the disk
  std::shared_ptr<const HeldClaims> saved_;
  CarrierNotes carriers_;
  std::map<uint64_t, Wait> waits_;
  std::set<std::string> untold_;  // reserved since the start, and not answered yet
  uint64_t last_wait_ = 0;
  Lifetime lifetime_;  // the disk's answers may come after this is gone
};

}  // namespace resmgr
