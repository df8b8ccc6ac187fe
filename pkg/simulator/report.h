// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <ostream>
#include <set>
#include <string>
#include <vector>

#include "pkg/base/units.h"
#include "pkg/classes/class_preview.h"
#include "pkg/simulator/simulated_node.h"

namespace resmgr {

// The effect of one step of a scenario on one container, with its present place, which is empty for
// a container that is gone. If only the container's name is empty, on the pod or claim; if both
// names are empty, on the node.
struct StepEffect : SimulatedPlace {
  // Another container that this step moved.
  struct Change {
    std::string pod{};  // "namespace/name"
    std::string container{};
    std::string old_cpus{};
    std::string old_mems{};
    std::string cpus{};
    std::string mems{};
    std::string exclusive{};  // the exclusive part of `cpus`
    bool had_own = false;     // it ran on exclusive CPUs
  };

  size_t step = 0;  // number of the document or call, from 1, over all files
  // "create", "start" (only when refused), "exit" (an init container that is done, or a recorded
  // stop), "delete", "resize", "restart", "wait", "config", "rebalance", "use"; of a claim, whose
  // name is in `pod`, "prepare", "unprepare"
  std::string op{};
  std::string pod{};  // "namespace/name"
  std::string container{};
  std::vector<std::string> candidates{};  // derivation of the place, if requested
  std::vector<PreviewedClass> classes{};
  std::string error{};  // the reason of a failure; empty for a success
  std::vector<Change> changed{};
};

// One line of JSON, without a line break:
// {"step","op","pod","container","cpus","mems","exclusive","shares","quota","pool","reason",
// "error","changed":[{"pod","container","cpus","mems"}]}
// All keys are always present; sets are kernel lists ("0-3,8"). A container with classes has also
// "classes":[{"kind","name","source","value"}].
std::string ToJson(const StepEffect& effect);

// As ToJson, for the page (pkg/page/web/simulation.js). Adds "qos", "cpuLimit" (milli-CPU) and
// "memoryLimit" (bytes), 0 without a limit; "reserved", the CPUs that the policy keeps for the
// system after the step; and "exclusive" of each change.
std::string ToPageJson(const StepEffect& effect, const CpuSet& reserved);

// The effects for people: a table with the moves of other containers below each effect; with
// `explain` also the reason of the container's place.
std::string ToTable(const std::vector<StepEffect>& effects, bool explain = false);

// The outcome of a scenario.
struct Totals {
  size_t placed = 0;                       // containers, as the counts below
  std::set<std::string> claims{};          // claims that got CPUs
  std::set<std::string> refused_claims{};  // claims that never got CPUs, each once
  CpuSet claimed{};                        // held for claims at the end
  size_t refused = 0;
  size_t moved = 0;          // containers with exclusive CPUs that got others
  size_t moved_sharing = 0;  // containers on shared CPUs that got others
  CpuSet exclusive{};        // exclusive CPUs of containers and claims
  CpuSet free{};             // the other CPUs
  CpuSet broken{};           // free CPUs on cores that are in part exclusive
};
Totals TotalsOf(const std::vector<StepEffect>& effects, const SimulatedNode& node);

// The final state: how many containers were placed, refused and moved, and how scattered the CPUs
// are that no container has exclusively.
std::string Summary(const std::vector<StepEffect>& effects, const SimulatedNode& node);

}  // namespace resmgr
