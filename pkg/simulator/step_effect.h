// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace resmgr {

// What one step of a scenario did to one container, or, with both names empty, to the node.
struct StepEffect {
  // Another container that runs elsewhere since then.
  struct Change {
    std::string pod{};  // "namespace/name"
    std::string container{};
    std::string old_cpus{};
    std::string old_mems{};
    std::string cpus{};
    std::string mems{};
    bool had_own = false;  // it ran on CPUs of its own
  };

  size_t step = 0;  // number of the document or call, from 1, over all files
  // "create", "start" (only when refused), "exit" (an init container that is done, or a recorded
  // stop), "delete", "resize", "restart", "wait", "config", "rebalance"
  std::string op{};
  std::string pod{};
  std::string container{};
  // Where it runs now, as far as the runtime was told; of one that is gone, nothing.
  std::string cpus{};
  std::string mems{};
  std::string exclusive{};  // the part of `cpus` that is its own
  int64_t shares = 0;
  int64_t quota = 0;                      // microseconds per period; -1 without a limit
  std::string pool{};                     // of the policy
  std::string reason{};                   // why it is there
  std::vector<std::string> candidates{};  // how that came about; only when it is asked for
  std::string error{};                    // why nothing happened; empty when it did
  std::vector<Change> changed{};
};

}  // namespace resmgr
