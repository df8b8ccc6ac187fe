// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "pkg/audit/batched_work.h"
#include "pkg/audit/cgroup_reader.h"
#include "pkg/base/status.h"
#include "pkg/resmgr/cgroup_access.h"
#include "pkg/sys/event_loop.h"

namespace resmgr {

// Looks, away from the loop, for values in containers' cgroups that differ from the known ones.
// Reports them in the form that a runtime takes: quota and period together, and memory if the
// container has a limit.
class CgroupLookup final : public ValuesOfOthers {
 public:
  // Thread-safe.
  using ReadOne = std::function<ResourceValues(const Subject& subject)>;

  // Reads cgroups by CgroupReader::ReadNumbers.
  CgroupLookup(EventLoop& loop, CgroupReader cgroups);
  // If `read` takes longer than `patience`, the answer has no values.
  CgroupLookup(EventLoop& loop, ReadOne read, std::chrono::milliseconds patience);

  void Look(std::vector<Subject> subjects, std::function<void(Found)> done) override;

 private:
  BatchedWork<Subject, ResourceValues> looks_;
};

// Why the container's cgroup does not get its CPUs and memory nodes: a cgroup above allows fewer, a
// partition took them, a cgroup beside or below it conflicts, or a controller is not enabled. May
// block.
std::string CauseOfRefusal(const CgroupReader& cgroups, CpusetLimits& limits,
                           const RefusalCauses::Subject& subject);

// Runs CauseOfRefusal away from the loop.
class CgroupCauses final : public RefusalCauses {
 public:
  using Looks = BatchedWork<Subject, std::string>;

  CgroupCauses(EventLoop& loop, CgroupReader cgroups);
  // If a look takes longer than `patience`, it reports no causes.
  CgroupCauses(EventLoop& loop, Looks::DoOne look, std::chrono::milliseconds patience);

  void Find(Subject subject, std::function<void(std::string cause)> done) override;

 private:
  Looks looks_;
};

// Writes CPUs and memory nodes into the container's cgroup and checks what the kernel has made of
// them. Opens only regular files directly in that directory, follows no link below the mount point,
// and creates nothing. May block.
Status WriteCpuset(const CgroupReader& cgroups, const CpusetWriter::Subject& subject);

// Runs WriteCpuset away from the loop. Requests that come during a write are carried out together
// after it.
class CgroupWriter final : public CpusetWriter {
 public:
  // Thread-safe.
  using WriteOne = std::function<Status(const Subject& subject)>;

  // Writes by WriteCpuset.
  CgroupWriter(EventLoop& loop, CgroupReader cgroups);
  // If a write takes longer than `patience`, it is given up.
  CgroupWriter(EventLoop& loop, WriteOne write, std::chrono::milliseconds patience);

  void Write(Subject subject, Answer answer) override;

 private:
  BatchedWork<Subject, Status> writes_;
};

}  // namespace resmgr
