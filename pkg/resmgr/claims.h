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

// Claims that hold CPUs on this node: reserved by the policy, kept in the state before the reply,
// and adopted by the next daemon before it lists any container. A reservation that does not come
// about in time is taken back. Loop's thread only.
class Claims final : public ClaimHolder {
 public:
  // Takes over what `state` kept, which may be nullptr. All references must outlive it. `timeout`:
  // for containers to leave the CPUs, and for the disk.
  Claims(Brain& brain, const PolicyChanges& changes, EventLoop& loop, StateStore* state,
         std::chrono::milliseconds timeout);

  void Reserve(const Claim& claim, std::function<void(StatusOr<ClaimGrant>)> done) override;
  void Release(const std::string& uid, std::function<void(Status)> done) override;
  std::vector<ClaimGrant> Held() const override;

  // New containers that a list showed, and those of which nothing was kept: some carry claims.
  void FindCarriers(std::span<const ContainerKey> adopted,
                    std::span<const ContainerKey> without_notes);
  // Containers may have left CPUs, claims may have other CPUs than those that are kept, and other
  // containers may carry them.
  void Examine();
  // Reservations that wait for containers are taken back.
  void OnDisconnected();

 private:
  using Reserved = std::function<void(StatusOr<ClaimGrant>)>;
  // A reservation, or a release, that has no reply yet.
  struct Wait {
    std::string uid;  // empty: of a release
    std::vector<Reserved> done{};
    bool written = false;
    EventLoop::HandlePtr timer{};
  };

  void TakeOverKept();
  // Reports and saves claims that have other CPUs than they had in `before`.
  void NoteOtherCpus(const HeldClaims& before);
  void ReserveNow(const Claim& claim, Reserved done);
  void ReserveHeld(const HeldClaim& held, const Claim& claim, Reserved done);
  void Add(const std::string& uid, Reserved done);
  // Unavailable while the disk refuses: a call that waited for it would outlast its caller.
  Status CheckDisk() const;
  void OnWritten(uint64_t number);
  void OnTimeout(uint64_t number);
  void Finish(uint64_t number, const StatusOr<ClaimGrant>& result);
  // Ends a wait in vain. A reservation that was never answered is given back.
  void TakeBack(uint64_t number, const Status& why);
  // Takes the CPUs back, and sends updates to the containers that get them.
  Status GiveBack(const std::string& uid);
  // Names a container that may still run on the claim's CPUs without carrying it; empty when none
  // does.
  std::string InTheWay(const HeldClaim& held) const;
  // Informs observers, too.
  void Save();
  void Keep();

  Brain& brain_;
  const PolicyChanges& changes_;
  EventLoop& loop_;
  StateStore* const state_;
  const std::chrono::milliseconds timeout_;
  std::shared_ptr<const HeldClaims> saved_;
  CarrierNotes carriers_;
  std::map<uint64_t, Wait> waits_;
  std::set<std::string> untold_;  // reserved since the start, without a reply as yet
  uint64_t last_wait_ = 0;
  Lifetime lifetime_;  // the disk's answers may come after this is gone
};

}  // namespace resmgr
