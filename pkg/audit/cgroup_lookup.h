// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <vector>

#include "pkg/audit/batched_look.h"
#include "pkg/audit/cgroup_reader.h"
#include "pkg/resmgr/values_of_others.h"

namespace resmgr {

// The values of `actual` that differ from those of `known`, in the form that a runtime takes: quota
// and period together, and memory where the container has a limit.
ResourceValues OfOthers(const ValuesOfOthers::Subject& subject, const CgroupValues& actual);

// Looks into the containers' cgroups, away from the loop.
class CgroupLookup final : public ValuesOfOthers {
 public:
  // Thread-safe.
  using ReadOne = std::function<ResourceValues(const Subject& subject)>;

  // By CgroupReader::ReadNumbers and OfOthers.
  CgroupLookup(EventLoop& loop, CgroupReader cgroups);
  // If `read` takes longer than `patience`, the answer has no values.
  CgroupLookup(EventLoop& loop, ReadOne read, std::chrono::milliseconds patience);

  void Look(std::vector<Subject> subjects, std::function<void(Found)> done) override;

 private:
  BatchedLook<Subject, ResourceValues> looks_;
};

}  // namespace resmgr
