// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>

#include "pkg/base/status.h"
#include "test/bench/testbed.h"

namespace resmgr::bench {

// Two daemons that differ in how often they sample what containers use: hardly ever, and as often
// as by default; and the containers that they sample, with cgroups in memory. Gone with the object.
class SampledContainers {
 public:
  // kUnavailable: there is no room in memory.
  static StatusOr<SampledContainers> Make(int containers);
  SampledContainers(SampledContainers&& other) noexcept;
  SampledContainers& operator=(SampledContainers&&) = delete;
  ~SampledContainers();

  // The same daemon, sampling every five minutes, that is, at its start only.
  DaemonCommand Without(const DaemonCommand& daemon) const { return With(daemon, "5m"); }
  // The same, sampling every ten seconds.
  DaemonCommand With(const DaemonCommand& daemon) const { return With(daemon, "10s"); }

  // Runs the containers behind this daemon, and makes their cgroups.
  Status Run(LoadClient& client) const;

 private:
  SampledContainers(std::filesystem::path root, int containers)
      : root_(std::move(root)), containers_(containers) {}
  DaemonCommand With(const DaemonCommand& daemon, const std::string& interval) const;

  std::filesystem::path root_;
  int containers_;
};

}  // namespace resmgr::bench
