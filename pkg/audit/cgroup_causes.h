// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "pkg/audit/batched_look.h"
#include "pkg/audit/cgroup_reader.h"
#include "pkg/resmgr/refusal_causes.h"

namespace resmgr {

// Causes in cgroups that change this container's CPUs and memory nodes: a cgroup above that allows
// less, a partition, one beside or below it that is in conflict, a controller that is not enabled.
// May block.
std::string CauseOfRefusal(const CgroupReader& cgroups, CpusetLimits& limits,
                           const RefusalCauses::Subject& subject);

// Runs CauseOfRefusal away from the loop.
class CgroupCauses final : public RefusalCauses {
 public:
  using Looks = BatchedLook<Subject, std::string>;

  CgroupCauses(EventLoop& loop, CgroupReader cgroups);
  // If a look takes longer than `patience`, it reports no causes.
  CgroupCauses(EventLoop& loop, Looks::LookAt look, std::chrono::milliseconds patience);

  void Find(Subject subject, std::function<void(std::string cause)> done) override;

 private:
  Looks looks_;
};

}  // namespace resmgr
