// SPDX-License-Identifier: Apache-2.0
// The cost of a sample of use, on a fake tree of cgroups in memory: usage-bench [CONTAINERS...]
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <unistd.h>

#include "pkg/base/parse.h"
#include "pkg/usage/usage_sampler.h"
#include "test/bench/usage/cgroup_files.h"

namespace {

namespace fs = std::filesystem;
using resmgr::UsageSubject;
using resmgr::bench::PutContainerCgroup;
using resmgr::bench::PutFile;

void Measure(int containers) {
  std::string root = "/dev/shm/usage-bench-XXXXXX";
  if (::mkdtemp(root.data()) == nullptr) std::abort();
  std::vector<UsageSubject> subjects;
  const fs::path pods = fs::path(root) / "sys/fs/cgroup/kubepods";
  PutFile(fs::path(root) / "sys/fs/cgroup/cgroup.controllers", "cpu memory\n");
  for (int i = 0; i < containers; ++i) {
    const std::string pod = fmt::format("pod{:032}", i / 2);
    const std::string id = fmt::format("{:064}", i);
    PutContainerCgroup(pods / pod / id);
    PutFile(pods / pod / "cpu.stat", "usage_usec 1\nnr_periods 1\nnr_throttled 0\n");
    PutFile(pods / pod / "memory.events",
            "low 0\nhigh 0\nmax 0\noom 0\noom_kill 0\noom_group_kill 0\n");
    subjects.push_back({.id = id,
                        .cgroup_parent = "/kubepods/" + pod,
                        .cpus = resmgr::CpuSet::Range(0, 63),
                        .mems = {0, 1},
                        .pool = "shared"});
  }
  std::string stat;
  for (int cpu = 0; cpu < 64; ++cpu)
    stat += fmt::format("cpu{} 12345678 1234 1234567 123456789 1234 0 12345 0 0 0\n", cpu);
  PutFile(fs::path(root) / "proc/stat", stat);
  const auto take = resmgr::TakeFrom(root, std::make_shared<resmgr::FileInHand>());
  const auto first = take(subjects, true);
  std::vector<double> costs;
  constexpr int kRounds = 21;
  size_t files = 0;
  for (int i = 0; i < kRounds; ++i) {
    const auto figures = take(subjects, false);
    costs.push_back(std::chrono::duration<double, std::milli>(figures->cost).count());
    files = figures->files;
  }
  std::ranges::sort(costs);
  const double cost = costs[kRounds / 2];
  fmt::print("{:>10} {:>8} {:>12.2f} {:>12.2f} {:>12.3f} %\n", containers, files,
             std::chrono::duration<double, std::milli>(first->cost).count(), cost,
             cost / 10'000 * 100);
  fs::remove_all(root);
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<int> counts = {50, 500, 2000};
  if (argc > 1) counts.clear();
  for (int i = 1; i < argc; ++i) {
    const auto count = resmgr::ParseInt(argv[i]);
    if (!count || *count < 1 || *count > 100'000) {
      fmt::print(stderr, "usage-bench [CONTAINERS...]\n");
      return 1;
    }
    counts.push_back(static_cast<int>(*count));
  }
  fmt::print("containers    files  first (ms)  sample (ms)  of one CPU at 10 s\n");
  for (const int count : counts)
    Measure(count);
  return 0;
}
