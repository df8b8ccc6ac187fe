// SPDX-License-Identifier: Apache-2.0
#include "test/bench/usage/cgroup_files.h"

#include <fstream>

#include <fmt/format.h>

namespace resmgr::bench {

namespace fs = std::filesystem;

void PutFile(const fs::path& file, const std::string& text) {
  fs::create_directories(file.parent_path());
  std::ofstream(file) << text;
}

void PutContainerCgroup(const fs::path& directory) {
  PutFile(
      directory / "cpu.stat",
      "usage_usec 123456789\nuser_usec 100000000\nsystem_usec 23456789\ncore_sched.force_idle_usec "
      "0\nnr_periods 100000\nnr_throttled 1000\nthrottled_usec 500000\nnr_bursts 0\nburst_usec "
      "0\n");
  for (const char* const name : {"cpu.pressure", "memory.pressure"})
    PutFile(directory / name,
            "some avg10=1.00 avg60=2.00 avg300=3.00 total=123456789\n"
            "full avg10=1.00 avg60=2.00 avg300=3.00 total=123456789\n");
  PutFile(directory / "memory.current", "1073741824\n");
  PutFile(directory / "memory.events",
          "low 0\nhigh 0\nmax 0\noom 0\noom_kill 0\noom_group_kill 0\n");
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
  PutFile(directory / "memory.numa_stat", numa);
}

}  // namespace resmgr::bench
