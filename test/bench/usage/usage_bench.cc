// SPDX-License-Identifier: Apache-2.0
// What a sample of use costs, on a fake tree of cgroups in memory: usage-bench [CONTAINERS...]
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <unistd.h>

#include "pkg/base/parse.h"
#include "pkg/usage/usage_sampler.h"

namespace {

namespace fs = std::filesystem;
using resmgr::UsageSubject;

void Put(const fs::path& file, const std::string& text) {
  fs::create_directories(file.parent_path());
  std::ofstream(file) << text;
}

// Texts as long as the kernel's, of cgroup v2 on a machine of 64 CPUs and four nodes.
void PutContainer(const fs::path& directory) {
  Put(directory / "cpu.stat",
      "usage_usec 123456789\nuser_usec 100000000\nsystem_usec 23456789\ncore_sched.force_idle_usec "
      "0\nnr_periods 100000\nnr_throttled 1000\nthrottled_usec 500000\nnr_bursts 0\nburst_usec "
      "0\n");
  for (const char* const name : {"cpu.pressure", "memory.pressure"})
    Put(directory / name,
        "some avg10=1.00 avg60=2.00 avg300=3.00 total=123456789\n"
        "full avg10=1.00 avg60=2.00 avg300=3.00 total=123456789\n");
  Put(directory / "memory.current", "1073741824\n");
  Put(directory / "memory.events", "low 0\nhigh 0\nmax 0\noom 0\noom_kill 0\noom_group_kill 0\n");
  std::string numa;
  for (const char* const key : {"anon",
                                "file",
                                "kernel_stack",
                                "pagetables",
                                "sec_pagetables",
                                "shmem",
                                "file_mapped",
                                "file_dirty",
                                "file_writeback",
                                "swapcached",
                                "anon_thp",
                                "file_thp",
                                "shmem_thp",
                                "inactive_anon",
                                "active_anon",
                                "inactive_file",
                                "active_file",
                                "unevictable",
                                "slab_reclaimable",
                                "slab_unreclaimable",
                                "workingset_refault_anon",
                                "workingset_refault_file",
                                "workingset_activate_anon",
                                "workingset_activate_file",
                                "workingset_restore_anon",
                                "workingset_restore_file",
                                "workingset_nodereclaim"})
    numa += fmt::format("{} N0=104857600 N1=104857600 N2=104857600 N3=104857600\n", key);
  Put(directory / "memory.numa_stat", numa);
}

void Measure(int containers) {
  std::string root = "/dev/shm/usage-bench-XXXXXX";
  if (::mkdtemp(root.data()) == nullptr) std::abort();
  std::vector<UsageSubject> subjects;
  const fs::path pods = fs::path(root) / "sys/fs/cgroup/kubepods";
  Put(fs::path(root) / "sys/fs/cgroup/cgroup.controllers", "cpu memory\n");
  for (int i = 0; i < containers; ++i) {
    const std::string pod = fmt::format("pod{:032}", i / 2);
    const std::string id = fmt::format("{:064}", i);
    PutContainer(pods / pod / id);
    Put(pods / pod / "cpu.stat", "usage_usec 1\nnr_periods 1\nnr_throttled 0\n");
    subjects.push_back({.id = id,
                        .cgroup_parent = "/kubepods/" + pod,
                        .cpus = resmgr::CpuSet::Range(0, 63),
                        .mems = {0, 1},
                        .pool = "shared"});
  }
  std::string stat;
  for (int cpu = 0; cpu < 64; ++cpu)
    stat += fmt::format("cpu{} 12345678 1234 1234567 123456789 1234 0 12345 0 0 0\n", cpu);
  Put(fs::path(root) / "proc/stat", stat);
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
