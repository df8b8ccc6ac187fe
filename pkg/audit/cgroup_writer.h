// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <vector>

#include "pkg/audit/cgroup_reader.h"
#include "pkg/base/status.h"
#include "pkg/resmgr/cpuset_writer.h"
#include "pkg/sys/event_loop.h"
#include "pkg/sys/off_loop.h"

namespace resmgr {

// Writes into the container's cgroup and reads back what the kernel has made of it. Opens only
// regular files directly in that directory, follows no link below the mount point, and creates
// nothing. May block.
Status WriteCpuset(const CgroupReader& cgroups, const CpusetWriter::Subject& subject);

// Runs WriteCpuset away from the loop. Requests that come during a write are carried out together
// after it.
class CgroupWriter final : public CpusetWriter {
 public:
  // Thread-safe.
  using WriteOne = std::function<Status(const Subject& subject)>;

  // By WriteCpuset.
  CgroupWriter(EventLoop& loop, CgroupReader cgroups);
  // If a write takes longer than `patience`, it is given up.
  CgroupWriter(EventLoop& loop, WriteOne write, std::chrono::milliseconds patience);

  void Write(Subject subject, Answer answer) override;

 private:
  struct Request {
    Subject subject;
    Answer answer;
  };
  struct Batch {
    std::vector<Request> requests;
    std::atomic<bool> given_up = false;  // writes that have not begun are left out
  };
  using Results = std::vector<Status>;

  static Results WriteAll(const WriteOne& write, const Batch& batch);
  void Begin();
  void End(const Results& results);
  void EndAll(const Status& status);

  EventLoop& loop_;
  const WriteOne write_;
  const std::chrono::milliseconds patience_;
  OffLoop writing_;
  std::vector<Request> waiting_;
  std::shared_ptr<Batch> batch_;  // the batch that is being written
  EventLoop::HandlePtr deadline_;
  bool hangs_ = false;  // former work has not ended in time
};

}  // namespace resmgr
