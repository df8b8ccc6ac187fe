// SPDX-License-Identifier: Apache-2.0
#include "test/bench/samples.h"

#include <csignal>
#include <cstdlib>
#include <fstream>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "test/bench/scenario.h"
#include "test/bench/usage/cgroup_files.h"
#include "test/support/containerd/child_process.h"
#include "test/support/cri_client/specs.h"

namespace resmgr::bench {

namespace fs = std::filesystem;

namespace {

constexpr std::chrono::seconds kHardlyEver{300};
constexpr std::chrono::seconds kSwitchTimeout{20};

// The number of configurations that came into force, by the daemon's log.
int ConfigurationsInForce(const fs::path& log) {
  std::ifstream file(log);
  int count = 0;
  for (std::string line; std::getline(file, line);)
    if (line.find("is in force: policy") != std::string::npos) ++count;
  return count;
}

}  // namespace

StatusOr<SampledContainers> SampledContainers::Make(int containers) {
  std::string root = "/dev/shm/resmgr-bench-XXXXXX";
  if (::mkdtemp(root.data()) == nullptr) return Unavailable("cannot make {}", root);
  PutFile(fs::path(root) / "sys/fs/cgroup/cgroup.controllers", "cpu memory\n");
  std::string stat;
  for (int cpu = 0; cpu < 64; ++cpu)
    stat += fmt::format("cpu{} 12345678 1234 1234567 123456789 1234 0 12345 0 0 0\n", cpu);
  PutFile(fs::path(root) / "proc/stat", stat);
  return SampledContainers(root, containers);
}

SampledContainers::SampledContainers(SampledContainers&& other) noexcept
    : root_(std::exchange(other.root_, fs::path())), containers_(other.containers_) {}

SampledContainers::~SampledContainers() {
  std::error_code ignored;
  if (!root_.empty()) fs::remove_all(root_, ignored);
}

fs::path SampledContainers::Configure(size_t index, std::chrono::seconds interval) const {
  fs::path config = root_ / fmt::format("{}.yaml", index);
  PutFile(config, fmt::format("usage: {{Interval: {}s}}\n", interval.count()));
  return config;
}

DaemonCommand SampledContainers::Of(const DaemonCommand& daemon, size_t index) const {
  DaemonCommand sampling = daemon;
  for (const std::string& word : {std::string("-config"), Configure(index, kHardlyEver).string(),
                                  std::string("-metrics-address"), std::string("127.0.0.1:0"),
                                  std::string("-host-root"), root_.string()})
    sampling.flags.push_back(word);
  return sampling;
}

Status SampledContainers::Switch(Candidate& candidate, size_t index, bool on) const {
  const int before = ConfigurationsInForce(candidate.log);
  Configure(index, on ? kInterval : kHardlyEver);
  candidate.process->Signal(SIGHUP);
  return test::WaitUntil("a configuration in force", kSwitchTimeout,
                         [&] { return ConfigurationsInForce(candidate.log) > before; });
}

Status SampledContainers::Run(LoadClient& client) const {
  RESMGR_ASSIGN_OR_RETURN(const std::vector<std::string> ids, RunContainers(client, containers_));
  const std::string parent = test::MakeBestEffortPod("bench").linux().cgroup_parent();
  for (const std::string& id : ids)
    PutContainerCgroup(root_ / ("sys/fs/cgroup" + parent) / id);
  return OkStatus();
}

}  // namespace resmgr::bench
