// SPDX-License-Identifier: Apache-2.0
#include "pkg/audit/memory_places.h"

#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "pkg/sys/temp_dir.h"

namespace resmgr {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20;

class MemoryPlacesTest : public testing::Test {
 protected:
  void Put(const std::string& path, std::string_view text) {
    const std::filesystem::path file = std::filesystem::path(mount_.path()) / path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }
  std::string Elsewhere(const NodeSet& nodes) const {
    return MemoryElsewhere(CgroupReader(mount_.path()),
                           {.cgroup_parent = "/kubepods/pod1", .id = "abc", .nodes = nodes});
  }

  TempDir mount_;
};

TEST_F(MemoryPlacesTest, VersionOneCountsPagesAndMovesNone) {
  Put("cpuset/kubepods/pod1/abc/cpuset.mems", "2\n");
  const int64_t pages = 96 * kMiB / ::sysconf(_SC_PAGESIZE);
  Put("memory/kubepods/pod1/abc/memory.numa_stat",
      fmt::format("total={0} N0=70000 N1={0} N2=1\nfile=70000 N0=70000 N1=0 N2=0\n"
                  "anon={0} N0=0 N1={0} N2=1\nunevictable=0 N0=0 N1=0 N2=0\n"
                  "hierarchical_anon={0} N0=9999 N1=9999 N2=9999\n",
                  pages));
  EXPECT_EQ(Elsewhere({2}), "96 MiB on memory node 1 stays there: cgroup v1 moves no memory");
  EXPECT_EQ(Elsewhere({1}), "") << "a page is nothing";
}

TEST_F(MemoryPlacesTest, VersionTwoCountsBytes) {
  Put("cgroup.controllers", "cpuset memory\n");
  Put("kubepods/pod1/abc/memory.numa_stat",
      "anon N0=2097152 N1=100663296 N2=0\nfile N0=1 N1=1 N2=1\nanon_thp N0=0 N1=50331648 N2=0\n");
  EXPECT_EQ(Elsewhere({0, 1}), "");
  EXPECT_EQ(Elsewhere({2}),
            "2 MiB on memory node 0, 96 MiB on memory node 1: the kernel has not moved it");
}

TEST_F(MemoryPlacesTest, WhatTheKernelDoesNotCountIsNotTold) {
  EXPECT_EQ(Elsewhere({0}), "") << "no cgroup";
  Put("cgroup.controllers", "cpuset memory\n");
  Put("kubepods/pod1/abc/cpuset.mems", "0\n");
  EXPECT_EQ(Elsewhere({0}), "") << "no file";
  Put("kubepods/pod1/abc/memory.numa_stat", "anon Nx=1 N=2 N-1=4194304 N3 N99999999=4194304\nanon");
  EXPECT_EQ(Elsewhere({0}), "");
}

}  // namespace
}  // namespace resmgr
