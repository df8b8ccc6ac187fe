// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>

#include "pkg/claims/held_claims.h"
#include "pkg/model/plan.h"
#include "pkg/model/snapshot.h"

namespace resmgr {

// Pods and containers as the policy behind claims sees them: parts of claims appear as containers,
// and containers that run on CPUs of claims are left out. All references must outlive it.
class ClaimView : public Snapshot {
 public:
  struct Options {
    // Includes the parts that have lost all of their CPUs, so that the policy may give them some.
    // Else they are left out, since policies would take them for containers that share CPUs.
    bool lost_too = false;
    // Visits parts before containers, for policies that give disputed CPUs to the one visited
    // first.
    bool parts_first = false;
  };
  ClaimView(const Snapshot& all, const HeldClaims& held, const ClaimCarriers& carriers,
            Options options = {false, false})
      : all_(all), held_(held), carriers_(carriers), options_(options) {}

  const Pod* FindPod(const PodSandboxId& id) const override;
  const Container* FindContainer(ContainerKey key) const override;
  void ForEachContainer(
      const std::function<void(const Pod&, const Container&)>& visit) const override;
  Overhead OverheadOf(const Pod& pod) const override { return all_.OverheadOf(pod); }
  HeldOverheads Overheads() const override { return all_.Overheads(); }

  // Whether the container runs on CPUs of claims.
  static bool IsHidden(ContainerKey key, const HeldClaims& held, const ClaimCarriers& carriers);

 private:
  const Snapshot& all_;
  const HeldClaims& held_;
  const ClaimCarriers& carriers_;
  const Options options_;
};

// For output to users: all containers, and the parts of claims as further containers.
class WithClaims final : public ClaimView {
 public:
  WithClaims(const Snapshot& all, const HeldClaims& held)
      : ClaimView(all, held, kNoCarriers, {.lost_too = true}) {}

 private:
  static inline const ClaimCarriers kNoCarriers;
};

// All containers, some of them with changes. `all` must outlive it.
class ChangedView : public Snapshot {
 public:
  explicit ChangedView(const Snapshot& all) : all_(all) {}

  const Pod* FindPod(const PodSandboxId& id) const override { return all_.FindPod(id); }
  const Container* FindContainer(ContainerKey key) const override;
  void ForEachContainer(
      const std::function<void(const Pod&, const Container&)>& visit) const override;
  Overhead OverheadOf(const Pod& pod) const override { return all_.OverheadOf(pod); }
  HeldOverheads Overheads() const override { return all_.Overheads(); }

 protected:
  const Snapshot& all_;
  std::map<ContainerKey, Container> changed_;
};

// Containers as they will be after several plans, applied in the order of the calls.
class PlannedView final : public ChangedView {
 public:
  using ChangedView::ChangedView;

  // Containers that are not known are ignored.
  void Apply(const Plan& plan);
  // All plans as one.
  Plan Together() const;

 private:
  Container* Changing(ContainerKey key);
};

}  // namespace resmgr
