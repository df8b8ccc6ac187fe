// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "pkg/base/units.h"

namespace resmgr {

// Resources in a CRI message (LinuxContainerResources): an empty value means that the message did
// not set it. The sets stay text, because an empty or unusual list must not be changed on its way
// to the runtime. Decisions are about ResourceValues, made from this by ReadValues.
struct LinuxResources {
  std::optional<int64_t> cpu_period;  // microseconds
  std::optional<int64_t> cpu_quota;   // microseconds per period; -1 is no limit
  std::optional<int64_t> cpu_shares;
  std::optional<int64_t> memory_limit;  // bytes
  std::optional<int64_t> oom_score_adj;
  std::optional<std::string> cpuset_cpus;
  std::optional<std::string> cpuset_mems;
  std::map<std::string, uint64_t> hugepage_limits;  // page size ("2MB") to bytes

  friend bool operator==(const LinuxResources&, const LinuxResources&) = default;
};

// The resources of a container after an update: each field that `changes` sets wins over `base`.
LinuxResources Merged(LinuxResources base, const LinuxResources& changes);
// The same, in place.
void Merge(LinuxResources& base, const LinuxResources& changes);

// The needs of a container, as the policy sees them: from the annotation of the webhook where the
// request does not contradict it, else estimated from LinuxResources (pkg/model/requirements.h).
struct Requirements {
  MilliCpu cpu_request;
  MilliCpu cpu_limit;  // 0 is no limit
  Bytes memory_request;
  Bytes memory_limit;  // 0 is no limit
  // `memory_request` is a guess from the OOM score: good for choosing a place, but no reason to
  // refuse the container.
  bool memory_estimated = false;
  // The container has no CPU request (memory limit) of its own, but may use the pod's resources.
  // `cpu_request` (`memory_request`) is then the part of the pod's that no other container accounts
  // for. Such a container gets no exclusive CPUs.
  bool cpu_of_pod = false;
  bool memory_of_pod = false;

  friend bool operator==(const Requirements&, const Requirements&) = default;
};

}  // namespace resmgr
