// SPDX-License-Identifier: Apache-2.0
#include "pkg/audit/cgroup_lookup.h"

#include <chrono>
#include <filesystem>
#include <fstream>
#include <future>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "pkg/sys/event_loop.h"
#include "pkg/sys/temp_dir.h"

namespace resmgr {
namespace {

class CgroupLookupTest : public testing::Test {
 protected:
  std::string File(const std::string& path) {
    const std::filesystem::path file = std::filesystem::path(mount_.path()) / path;
    std::filesystem::create_directories(file.parent_path());
    return file;
  }
  void Put(const std::string& path, std::string_view text) { std::ofstream(File(path)) << text; }
  void PutV1(std::string_view shares, std::string_view quota, std::string_view memory) {
    Put("cpu/kubepods/pod1/abc/cpu.shares", shares);
    Put("cpu/kubepods/pod1/abc/cpu.cfs_quota_us", quota);
    Put("cpu/kubepods/pod1/abc/cpu.cfs_period_us", "100000\n");
    Put("memory/kubepods/pod1/abc/memory.limit_in_bytes", memory);
  }
  // A container with half a CPU and 100 MiB.
  static ValuesOfOthers::Subject Subject() {
    return {.cgroup_parent = "/kubepods/pod1",
            .id = ContainerId("abc"),
            .known = {.cpu_shares = 512, .cpu_quota = 50'000, .cpu_period = 100'000},
            .memory_limit = int64_t{100} << 20};
  }
  ResourceValues Look() {
    ValuesOfOthers::Found found;
    lookup_.Look({Subject()}, [&](ValuesOfOthers::Found all) {
      found = std::move(all);
      loop_.Stop();
    });
    loop_.Run();
    return found.empty() ? ResourceValues() : found.front();
  }

  TempDir mount_;
  EventLoop loop_;
  CgroupLookup lookup_{loop_, CgroupReader(mount_.path())};
};

TEST_F(CgroupLookupTest, WhatTheRuntimeHasSetIsNotOfOthers) {
  PutV1("512\n", "50000\n", "104857600\n");
  EXPECT_EQ(Look(), ResourceValues());
}

TEST_F(CgroupLookupTest, TellsWhatOthersHaveSet) {
  PutV1("2\n", "150000\n", "209715200\n");
  Put("memory/kubepods/pod1/abc/memory.memsw.limit_in_bytes", "209715200\n");
  EXPECT_EQ(Look(), (ResourceValues{.cpu_quota = 150'000,
                                    .cpu_period = 100'000,
                                    .memory_limit = int64_t{200} << 20,
                                    .memory_swap_limit = int64_t{200} << 20}));
}

TEST_F(CgroupLookupTest, ALimitThatWasLiftedIsTold) {
  PutV1("512\n", "-1\n", "9223372036854771712\n");
  EXPECT_EQ(Look(), (ResourceValues{.cpu_quota = -1, .cpu_period = 100'000, .memory_limit = -1}));
}

TEST_F(CgroupLookupTest, ReadsVersionTwo) {
  Put("cgroup.controllers", "cpu memory\n");
  Put("kubepods/pod1/abc/cpu.max", "150000 100000\n");
  Put("kubepods/pod1/abc/memory.max", "209715200\n");
  Put("kubepods/pod1/abc/memory.swap.max", "0\n");
  EXPECT_EQ(Look(), (ResourceValues{.cpu_quota = 150'000,
                                    .cpu_period = 100'000,
                                    .memory_limit = int64_t{200} << 20,
                                    .memory_swap_limit = int64_t{200} << 20}));
}

TEST_F(CgroupLookupTest, AContainerWithoutACgroupHasNothing) {
  EXPECT_EQ(Look(), ResourceValues());
}

TEST_F(CgroupLookupTest, AFifoDelaysNobody) {
  const std::string fifo = File("cpu/kubepods/pod1/abc/cpu.cfs_quota_us");
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  EXPECT_EQ(Look(), ResourceValues());
}

TEST(HungCgroupLookupTest, DelaysNobodyForLong) {
  std::promise<void> go;
  EventLoop loop;
  CgroupLookup lookup(
      loop,
      [gate = go.get_future().share()](const ValuesOfOthers::Subject&) {
        gate.wait();
        return ResourceValues{.cpu_quota = 1};
      },
      std::chrono::milliseconds(20));
  const auto look = [&] {
    ValuesOfOthers::Found found;
    lookup.Look({{.id = ContainerId("abc")}}, [&](ValuesOfOthers::Found all) {
      found = std::move(all);
      loop.Stop();
    });
    loop.Run();
    return found;
  };
  EXPECT_TRUE(look().empty());
  EXPECT_TRUE(look().empty()) << "the former one has not ended";
  go.set_value();
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  ValuesOfOthers::Found found;
  while (found.empty() && std::chrono::steady_clock::now() < until)
    found = look();
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].cpu_quota, 1);
}

}  // namespace
}  // namespace resmgr
