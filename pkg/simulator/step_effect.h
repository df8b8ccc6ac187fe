// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "pkg/base/units.h"
#include "pkg/classes/class_preview.h"

namespace resmgr {

// The effect of one step of a scenario on one container; without the name of a container, on the
// pod or claim; with both names empty, on the node.
struct StepEffect {
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
  // The present place, as sent to the runtime; empty for a container that is gone.
  std::string cpus{};
  std::string mems{};
  std::string exclusive{};  // the exclusive part of `cpus`
  int64_t shares = 0;
  int64_t quota = 0;     // microseconds per period; -1 without a limit
  std::string qos{};     // of its pod
  MilliCpu cpu_limit{};  // 0: none, as the next one
  Bytes memory_limit{};
  std::string pool{};                     // the policy's
  std::string reason{};                   // for the place
  std::vector<std::string> candidates{};  // derivation of the place, if requested
  std::vector<PreviewedClass> classes{};
  std::string error{};  // the reason of a failure; empty for a success
  std::vector<Change> changed{};
};

}  // namespace resmgr
