// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace resmgr {

// Settings with which a container's first process begins, and which its children inherit. No file
// of a cgroup has them: a runtime sets them at creation, or another program sets them for each
// thread. The numbers of the enumerations are those of NRI's messages (LinuxScheduler,
// LinuxIOPriority, LinuxMemoryPolicy). Plain values.

struct SchedulerSettings {
  enum class Policy {
    kNone = 0,
    kOther = 1,
    kFifo = 2,
    kRoundRobin = 3,
    kBatch = 4,
    kIdle = 6,
    kDeadline = 7
  };
  enum class Flag {
    kResetOnFork = 0,
    kReclaim = 1,
    kDeadlineOverrun = 2,
    kKeepPolicy = 3,
    kKeepParameters = 4,
    kUtilizationClampMin = 5,
    kUtilizationClampMax = 6,
  };

  Policy policy = Policy::kNone;
  int32_t nice = 0;           // -20 to 19; for kOther and kBatch
  int32_t priority = 0;       // 1 to 99; for kFifo and kRoundRobin
  std::vector<Flag> flags{};  // each once
  // In nanoseconds, as in the kernel and in the OCI; for kDeadline.
  uint64_t runtime_ns = 0;
  uint64_t deadline_ns = 0;
  uint64_t period_ns = 0;

  friend bool operator==(const SchedulerSettings&, const SchedulerSettings&) = default;
};

struct IoPriority {
  enum class Class { kNone = 0, kRealTime = 1, kBestEffort = 2, kIdle = 3 };

  Class io_class = Class::kNone;
  int32_t priority = 0;  // 0, the highest, to 7

  friend bool operator==(const IoPriority&, const IoPriority&) = default;
};

// The nodes from which a process gets memory (set_mempolicy). No other process can set it.
struct MemoryPolicySettings {
  enum class Mode {
    kDefault = 0,
    kPreferred = 1,
    kBind = 2,
    kInterleave = 3,
    kLocal = 4,
    kPreferredMany = 5,
    kWeightedInterleave = 6,
  };
  enum class Flag { kStaticNodes = 0, kRelativeNodes = 1, kNumaBalancing = 2 };

  Mode mode = Mode::kDefault;
  std::string nodes{};        // "0-1,3"; empty for kDefault and kLocal
  std::vector<Flag> flags{};  // each once

  friend bool operator==(const MemoryPolicySettings&, const MemoryPolicySettings&) = default;
};

}  // namespace resmgr
