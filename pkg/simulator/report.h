// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ostream>
#include <string>
#include <vector>

#include "pkg/simulator/simulated_node.h"
#include "pkg/simulator/step_effect.h"

namespace resmgr {

// One line of JSON, without a line break:
//   {"step","op","pod","container","cpus","mems","exclusive","shares","quota","pool","reason",
//    "error","changed":[{"pod","container","cpus","mems"}]}
// All keys are always there; sets are kernel lists ("0-3,8").
std::string ToJson(const StepEffect& effect);

// The same for people: a table, and below each effect where other containers went; with `explain`
// also why the container is where it is.
std::string ToTable(const std::vector<StepEffect>& effects, bool explain = false);

// How it ended: what was placed, refused and moved, and how scattered the CPUs are that no
// container has for itself.
std::string Summary(const std::vector<StepEffect>& effects, const SimulatedNode& node);

}  // namespace resmgr
