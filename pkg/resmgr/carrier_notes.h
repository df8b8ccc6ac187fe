// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "pkg/claims/held_claims.h"
#include "pkg/resmgr/container_store.h"
#include "pkg/resmgr/state_writer.h"
#include "pkg/state/saved_claim.h"

namespace resmgr {

// The containers that carry claims, noted by pod, name and attempt, since a container that is being
// created has no id yet. A claim's notes stay until another container carries it, or until its
// release: even a creation of unknown outcome may have made a container. A value; nothing here is
// saved.
class CarrierNotes {
 public:
  // Takes over an earlier daemon's notes about a claim.
  void Take(const std::string& uid, std::vector<SavedCarrier> carriers);
  // Notes containers that began to carry claims since the last call; returns whether the notes
  // changed.
  bool Update(const HeldClaims& held, const ClaimCarriers& carriers, const ContainerStore& store);
  // Forgets claims that are not held.
  void Retain(const HeldClaims& held);
  std::vector<SavedCarrier> Of(const std::string& uid) const;

  // New containers that a list showed, ascending; those of them without saved data; and the
  // containers already known to carry claims.
  struct Listed {
    std::span<const ContainerKey> adopted;
    std::span<const ContainerKey> without_notes;
    const ClaimCarriers& carriers;
    const ContainerStore& store;
    const StateWriter& state_writer;
  };
  // The claims that listed containers carry. If no noted container of a claim is there, its note
  // may have been lost with the daemon: then the claim is carried by the one container without
  // saved data that is on exactly its CPUs; if there are several, by none, unless they may share
  // it.
  ClaimCarriers Find(const HeldClaims& held, const Listed& listed) const;

 private:
  std::map<std::string, std::vector<SavedCarrier>> notes_;  // by claim
  ContainerKey last_{};                                     // the newest carrier that was taken in
};

}  // namespace resmgr
