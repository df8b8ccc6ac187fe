// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "pkg/log/log.h"
#include "pkg/metrics/metrics.h"
#include "pkg/topology/cpu_set.h"

namespace resmgr {

// Detects another component that assigns CPUs: most likely the kubelet's CPU Manager, whose updates
// carry cpusets of its own. They never take effect, so nothing else would show that the node is set
// up wrongly. Each is counted, the first one of a daemon is a warning. On the
// loop's thread.
class CpusetOverrides {
 public:
  // `metrics` may be null. `warned` is whether this daemon has warned already; nullptr: it has not.
  CpusetOverrides(Metrics* metrics, bool* warned);
  CpusetOverrides(const CpusetOverrides&) = delete;
  CpusetOverrides& operator=(const CpusetOverrides&) = delete;

  // CPUs that are the policy's for a container; empty where it leaves them alone.
  struct Ours {
    std::optional<CpuSet> before;   // by its last decision
    std::optional<CpuSet> decided;  // by the one about this update
    std::optional<CpuSet> carried;  // CPUs sent in place of the requested ones
  };
  // Notes an admitted update of a container that asks for the CPUs in the list `asked`. Repeated
  // CPUs of `ours` do not count as an override.
  void Note(std::string_view container, std::string_view asked, const Ours& ours);

 private:
  Logger& log_;
  Metrics* const metrics_;
  bool own_warned_ = false;
  bool& warned_;
};

}  // namespace resmgr
