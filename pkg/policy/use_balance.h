// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "pkg/base/status.h"
#include "pkg/model/snapshot.h"
#include "pkg/policy/container_use.h"
#include "pkg/policy/policy.h"

namespace resmgr::policy {

// Chooses containers to move between shared pools by the containers' use. Pure functions; the
// caller carries the plans out.
//
// A container wants the CPUs that it uses and, if its tasks waited for CPUs, more by the part of
// the time in which they waited: at most twice its use and never more than its limit. A pool lacks
// what its containers want and its CPUs cannot give; if pools have CPUs in common, smaller pools
// are served first. All amounts are CPUs.

struct UseLimits {
  int most_moves = 5;        // the budget of one plan
  double least_gain = 0.2;   // CPUs that one move must gain; less is measurement noise
  double least_part = 0.25;  // CPUs that one move must gain, as a part of what the container wants
};

struct PoolLoad {
  double cpus = 0;
  double wanted = 0;
  double lacking = 0;
};
using PoolLoads = std::map<std::string, PoolLoad>;  // by the pools' names

// One move, and why.
struct UseMove {
  ContainerKey key{};
  std::string from{};
  std::string to{};
  double used = 0;  // by the container
  std::optional<double> pressure{};
  double wanted = 0;
  PoolLoad from_load{};  // of the old pool before the move
  PoolLoad to_load{};    // of the new pool before the move
  double gain = 0;       // CPUs that all pools together lack less after the move
  // The pools that lack less after the move, and by how much: also pools that contain `from`.
  std::map<std::string, double> relief{};
};

struct UsePlan {
  std::vector<UseMove> moves{};  // in the order of their gains; each container once
  PoolLoads loads{};             // before all of them
  double lacking = 0;            // CPUs that all pools lack before the moves
  double lacking_after = 0;      // predicted
  size_t measured = 0;           // containers in shared pools whose use is known
};

// The shared CPUs that a container with these CPUs of its own and this limit (0: none) wants.
double WantedCpus(const ContainerUse& use, double own, double limit);

// The CPUs that the shared pools of this policy have, and those that are wanted of them.
PoolLoads LoadsOf(const Policy& policy, const Snapshot& snapshot, const MeasuredUse& use);
double Lacking(const PoolLoads& loads);

// The fewest moves that gain most, tried on copies of the policy. `stays` returns true for
// containers that must not move.
UsePlan PlanByUse(const Policy& policy, const Snapshot& snapshot, const MeasuredUse& use,
                  const UseLimits& limits, const std::function<bool(ContainerKey)>& stays);

}  // namespace resmgr::policy
