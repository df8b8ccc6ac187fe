// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <string>

#include "pkg/base/status.h"
#include "test/bench/testbed.h"

namespace resmgr::bench {

// Daemons that sample what containers use as often as by default, or hardly ever, and the
// containers that they sample, with cgroups in memory. Gone with the object.
class SampledContainers {
 public:
  // The default interval.
  static constexpr std::chrono::seconds kInterval{10};

  // kUnavailable: there is no room in memory.
  static StatusOr<SampledContainers> Make(int containers);
  SampledContainers(SampledContainers&& other) noexcept;
  SampledContainers& operator=(SampledContainers&&) = delete;
  ~SampledContainers();

  int containers() const { return containers_; }

  // The same daemon with a configuration of its own, the one for the candidate of this index. It
  // takes samples at its start only, until it is switched on.
  DaemonCommand Of(const DaemonCommand& daemon, size_t index) const;
  // From now on the candidate samples each kInterval, or every five minutes. Returns once this is
  // in force. kDeadlineExceeded: this did not happen in time.
  Status Switch(Candidate& candidate, size_t index, bool on) const;

  // Runs the containers behind this daemon, and makes their cgroups.
  Status Run(LoadClient& client) const;

 private:
  SampledContainers(std::filesystem::path root, int containers)
      : root_(std::move(root)), containers_(containers) {}
  std::filesystem::path Configure(size_t index, std::chrono::seconds interval) const;

  std::filesystem::path root_;
  int containers_;
};

}  // namespace resmgr::bench
