// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <vector>

#include "pkg/audit/cgroup_reader.h"
#include "pkg/resmgr/values_of_others.h"
#include "pkg/sys/event_loop.h"
#include "pkg/sys/off_loop.h"

namespace resmgr {

// The values of `actual` that differ from those of `known`, in the form that a runtime takes: quota
// and period together, and memory where the container has a limit.
ResourceValues OfOthers(const ValuesOfOthers::Subject& subject, const CgroupValues& actual);

// Looks into the containers' cgroups, away from the loop. Requests that come during a look are
// answered together by the next look.
class CgroupLookup final : public ValuesOfOthers {
 public:
  // Thread-safe.
  using ReadOne = std::function<ResourceValues(const Subject& subject)>;

  // By CgroupReader::ReadNumbers and OfOthers.
  CgroupLookup(EventLoop& loop, CgroupReader cgroups);
  // If `read` takes longer than `patience`, the answer is that nothing is known.
  CgroupLookup(EventLoop& loop, ReadOne read, std::chrono::milliseconds patience);

  void Look(std::vector<Subject> subjects, std::function<void(Found)> done) override;

 private:
  struct Request {
    std::vector<Subject> subjects;
    std::function<void(Found)> done;
  };
  using Batch = std::vector<Request>;

  void Begin();
  void End(std::vector<Found> found);

  EventLoop& loop_;
  const ReadOne read_;
  const std::chrono::milliseconds patience_;
  OffLoop reading_;
  Batch waiting_;
  std::shared_ptr<Batch> batch_;  // that is being looked up
  EventLoop::HandlePtr deadline_;
  bool hangs_ = false;  // former work has not ended in time
};

}  // namespace resmgr
