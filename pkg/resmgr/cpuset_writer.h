// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "pkg/base/ids.h"
#include "pkg/base/status.h"
#include "pkg/topology/cpu_set.h"

namespace resmgr {

// Writes CPUs and memory nodes into the cgroups of containers whose update the runtime refuses. The
// runtime does not know of the write: it reports its own notes, and not what is in force. Loop's
// thread only.
class CpusetWriter {
 public:
  virtual ~CpusetWriter() = default;

  struct Subject {
    std::string cgroup_parent{};
    ContainerId id{};
    std::optional<CpuSet> cpus{};  // empty: unchanged
    std::optional<NodeSet> mems{};
  };
  struct Answer {
    // OK: the kernel enforces it. Else it may be in force in part.
    std::function<void(const Status& status)> done;
    // A write that was given up, and already answered, has ended after all: the CPUs in force are
    // not known.
    std::function<void()> late;
  };
  // Runs `done` soon, even if the write hangs, and never inside this call.
  virtual void Write(Subject subject, Answer answer) = 0;
};

}  // namespace resmgr
