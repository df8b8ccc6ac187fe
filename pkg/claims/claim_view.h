// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>

#include "pkg/claims/held_claims.h"
#include "pkg/model/plan.h"
#include "pkg/model/snapshot.h"

namespace resmgr {

// Pods and containers as the policy behind claims sees them: with the parts of claims, and without
// the containers that run on CPUs of claims. All references must outlive it.
class ClaimView final : public Snapshot {
 public:
  ClaimView(const Snapshot& all, const HeldClaims& held, const ClaimCarriers& carriers)
      : all_(all), held_(held), carriers_(carriers) {}

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
};

// For people: all containers, and the parts of claims as containers beside them.
class WithClaims final : public Snapshot {
 public:
  WithClaims(const Snapshot& all, const HeldClaims& held) : view_(all, held, none_) {}

  const Pod* FindPod(const PodSandboxId& id) const override { return view_.FindPod(id); }
  const Container* FindContainer(ContainerKey key) const override {
    return view_.FindContainer(key);
  }
  void ForEachContainer(
      const std::function<void(const Pod&, const Container&)>& visit) const override {
    view_.ForEachContainer(visit);
  }
  Overhead OverheadOf(const Pod& pod) const override { return view_.OverheadOf(pod); }
  HeldOverheads Overheads() const override { return view_.Overheads(); }

 private:
  const ClaimCarriers none_;
  const ClaimView view_;
};

// Containers as they are once several plans are carried out, one after the other.
class PlannedView final : public Snapshot {
 public:
  explicit PlannedView(const Snapshot& all) : all_(all) {}

  const Pod* FindPod(const PodSandboxId& id) const override { return all_.FindPod(id); }
  const Container* FindContainer(ContainerKey key) const override;
  void ForEachContainer(
      const std::function<void(const Pod&, const Container&)>& visit) const override;
  Overhead OverheadOf(const Pod& pod) const override { return all_.OverheadOf(pod); }
  HeldOverheads Overheads() const override { return all_.Overheads(); }

  // Containers that are not known are ignored.
  void Apply(const Plan& plan);
  // All plans as one.
  Plan Together() const;

 private:
  Container* Changing(ContainerKey key);

  const Snapshot& all_;
  std::map<ContainerKey, Container> changed_;
};

}  // namespace resmgr
