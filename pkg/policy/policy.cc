// SPDX-License-Identifier: Apache-2.0
#include "pkg/policy/policy.h"

namespace resmgr {

void Policy::Prepare(const Pod&) {}

StatusOr<Plan> Policy::LookAgain(const Snapshot&, ContainerKey) {
  return Plan{};
}

StatusOr<Plan> Policy::Rebalance(const Snapshot&) {
  return Plan{};
}

policy::SharedPools Policy::Shared(const Snapshot&) const {
  return {};
}

std::vector<std::string> Policy::TargetsOf(const Snapshot&, ContainerKey) const {
  return {};
}

StatusOr<Plan> Policy::MoveShared(const Snapshot&, std::span<const policy::PoolMove> moves) {
  if (moves.empty()) return Plan{};
  return FailedPrecondition("policy {} moves no containers between shared pools", name());
}

StatusOr<Plan> Policy::FollowUse(const Snapshot&, const policy::MeasuredUse&) {
  return Plan{};
}

std::vector<std::string> Policy::Explain(ContainerKey) const {
  return {};
}

std::vector<ConsideredPlace> Policy::Considered(ContainerKey) const {
  return {};
}

ClassNames Policy::ClassesOf(ContainerKey) const {
  return {};
}

std::vector<std::string> Policy::WaysIn(const Snapshot&, const Pod&, const Container&) const {
  return {};
}

}  // namespace resmgr
