// SPDX-License-Identifier: Apache-2.0
#include "pkg/audit/cgroup_requests.h"

#include <chrono>
#include <filesystem>
#include <fstream>
#include <future>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "pkg/sys/event_loop.h"
#include "pkg/sys/temp_dir.h"
#include "pkg/sys/unique_fd.h"

namespace resmgr {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;

class CgroupLookupTest : public testing::Test {
 protected:
  void Put(const std::string& path, std::string_view text) const { mount_.Put(path, text); }
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
  fs::create_directories(mount_.File("cpu/kubepods/pod1/abc"));
  const std::string fifo = mount_.File("cpu/kubepods/pod1/abc/cpu.cfs_quota_us");
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

class CgroupCausesTest : public testing::Test {
 protected:
  void Put(const std::string& path, const std::string& text) const {
    mount_.Put(path, text + "\n");
  }
  void Unified() {
    Put("cgroup.controllers", "cpuset cpu");
    Put("cgroup.subtree_control", "cpuset cpu");
    Put("kubepods/cgroup.subtree_control", "cpuset cpu");
  }
  std::string Cause(std::string_view cpus, const std::string& id = "abc",
                    const std::string& parent = "/kubepods/pod1") const {
    const CgroupReader cgroups(mount_.path(), mount_.File("proc"), mount_.File("online"));
    CpusetLimits limits = cgroups.Limits();
    return CauseOfRefusal(cgroups, limits,
                          {.cgroup_parent = parent,
                           .id = ContainerId(id),
                           .cpus = CpuSet::Parse(cpus).value(),
                           .mems = NodeSet{0}});
  }

  TempDir mount_;
};

// runc: "write .../cpuset.cpus: permission denied".
TEST_F(CgroupCausesTest, AParentOfVersionOneThatIsSmaller) {
  Put("cpuset/kubepods/cpuset.cpus", "0-3");
  Put("cpuset/kubepods/pod1/cpuset.cpus", "0-3");
  Put("cpuset/kubepods/pod1/cpuset.mems", "0");
  Put("cpuset/kubepods/pod1/abc/cpuset.cpus", "0-1");
  EXPECT_EQ(Cause("4-5"), "/kubepods allows CPUs 0-3 only: widen its cpuset.cpus");
  EXPECT_EQ(Cause("4-5", ""), "/kubepods allows CPUs 0-3 only: widen its cpuset.cpus")
      << "it was not created";
  EXPECT_EQ(Cause("2-3"), "");
}

// runc: "write .../cpuset.cpus: device or resource busy".
TEST_F(CgroupCausesTest, ACgroupOfVersionOneThatTheContainerMade) {
  Put("cpuset/kubepods/pod1/cpuset.cpus", "0-7");
  Put("cpuset/kubepods/pod1/cpuset.mems", "0");
  Put("cpuset/kubepods/pod1/abc/cpuset.cpus", "0-7");
  Put("cpuset/kubepods/pod1/abc/docker/cpuset.cpus", "0-7");
  EXPECT_EQ(Cause("0,2-7"),
            "/kubepods/pod1/abc/docker, which the container made, has CPU 1: write fewer into its "
            "cpuset.cpus");
}

// runc: "cannot enter cgroupv2 ... with domain controllers -- it is in threaded mode".
TEST_F(CgroupCausesTest, APodWhoseCgroupTakesNoContainer) {
  Unified();
  Put("kubepods/pod1/cgroup.type", "threaded");
  EXPECT_EQ(
      Cause("1", ""),
      "cgroup.type of /kubepods/pod1 is \"threaded\", so it takes no container: make it anew");
  Put("kubepods/pod1/cgroup.type", "domain invalid");
  EXPECT_TRUE(Cause("1", "").starts_with("cgroup.type of /kubepods/pod1 is \"domain invalid\""));
}

// runc: ".../cpuset.cpus: no such file or directory".
TEST_F(CgroupCausesTest, AControllerThatIsNotEnabled) {
  Unified();
  Put("kubepods/cgroup.subtree_control", "cpu");
  Put("kubepods/pod1/abc/cpu.weight", "39");
  EXPECT_EQ(Cause("1"),
            "the controller cpuset is not enabled in cgroup.subtree_control of /kubepods: write "
            "+cpuset into it");
}

// A newer kernel refuses CPUs that a cgroup beside it has exclusively.
TEST_F(CgroupCausesTest, ACgroupBesideItWithExclusiveCpus) {
  Unified();
  Put("kubepods/pod1/cpuset.cpus.effective", "0-7");
  Put("kubepods/pod1/cpuset.mems.effective", "0");
  Put("kubepods/pod1/abc/cpuset.cpus.exclusive", "4-5");
  Put("kubepods/pod1/abc/cpuset.cpus", "4-5");
  Put("kubepods/pod1/other/cpuset.cpus.exclusive", "5-7");
  EXPECT_EQ(Cause("4-5"),
            "CPU 5 is in cpuset.cpus.exclusive of /kubepods/pod1/other: write fewer into it");
}

TEST_F(CgroupCausesTest, APartitionOfOthers) {
  Unified();
  Put("kubepods/pod1/cpuset.cpus.effective", "0-6");
  Put("kubepods/pod1/cpuset.mems.effective", "0");
  Put("foo/cpuset.cpus.partition", "root");
  Put("foo/cpuset.cpus.effective", "7");
  EXPECT_EQ(Cause("6-7"),
            "CPU 7 belongs to the partition of /foo: write member into its cpuset.cpus.partition");
  Put("kubepods.slice/kubepods-pod2.slice/cpuset.cpus.effective", "0-6");
  Put("kubepods.slice/kubepods-pod2.slice/cpuset.mems.effective", "0");
  EXPECT_EQ(Cause("6-7", "", "kubepods-pod2.slice"),
            "CPU 7 belongs to the partition of /foo: write member into its cpuset.cpus.partition");
}

TEST_F(CgroupCausesTest, LooksNowhereElse) {
  Unified();
  EXPECT_EQ(Cause("1", "", ""), "") << "the runtime has a default that is not known";
  EXPECT_EQ(Cause("1", "", "/kubepods/../../etc"), "");
}

TEST_F(CgroupCausesTest, AParentThatIsTooLongHasNoCause) {
  Put("cpuset/kubepods/cpuset.cpus", "0-3");
  std::string parent = "/kubepods";
  for (int i = 0; i < 4096; ++i)
    parent += "/a";
  EXPECT_EQ(Cause("4-5", "", parent), "");
  EXPECT_EQ(Cause("4-5", "abc", parent), "");
  std::string slice;
  for (int i = 0; i < 4096; ++i)
    slice += "a-";
  EXPECT_EQ(Cause("4-5", "", slice + "a.slice"), "");
}

TEST(HungCgroupCausesTest, DelayNoCallForLong) {
  std::promise<void> go;
  EventLoop loop;
  CgroupCauses causes(
      loop,
      [gate = go.get_future().share()](const RefusalCauses::Subject&) {
        gate.wait();
        return std::string("a cause");
      },
      std::chrono::milliseconds(20));
  std::string found = "none";
  causes.Find({}, [&](const std::string& cause) {
    found = cause;
    loop.Stop();
  });
  EXPECT_EQ(found, "none") << "not from within";
  loop.Run();
  EXPECT_EQ(found, "");
  go.set_value();
}

class CgroupWriterTest : public testing::Test {
 protected:
  fs::path Path(const std::string& path) const { return fs::path(mount_.path()) / path; }
  void Put(const std::string& path, std::string_view text) const { mount_.Put(path, text); }
  std::string Get(const std::string& path) const {
    std::ifstream file(Path(path));
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  }
  void PutV1(const std::string& name = "kubepods/pod1/abc") {
    Put("cpuset/" + name + "/cpuset.cpus", "0-7\n");
    Put("cpuset/" + name + "/cpuset.mems", "0-1\n");
  }
  static CpusetWriter::Subject Subject(const std::string& parent = "/kubepods/pod1") {
    return {.cgroup_parent = parent,
            .id = ContainerId("abc"),
            .cpus = CpuSet::Range(2, 3),
            .mems = NodeSet{1}};
  }
  Status Write(const CpusetWriter::Subject& subject = Subject()) const {
    return WriteCpuset(CgroupReader(mount_.path()), subject);
  }
  std::string Why() const { return std::string(Message(Write())); }

  TempDir mount_;
};

TEST_F(CgroupWriterTest, WritesVersionOne) {
  PutV1();
  EXPECT_TRUE(Write().ok()) << Write();
  EXPECT_EQ(Get("cpuset/kubepods/pod1/abc/cpuset.cpus"), "2-3");
  EXPECT_EQ(Get("cpuset/kubepods/pod1/abc/cpuset.mems"), "1");
}

TEST_F(CgroupWriterTest, WritesWhatIsSaidAndNothingElse) {
  PutV1();
  CpusetWriter::Subject subject = Subject();
  subject.mems.reset();
  EXPECT_TRUE(Write(subject).ok()) << Write(subject);
  EXPECT_EQ(Get("cpuset/kubepods/pod1/abc/cpuset.mems"), "0-1\n");
}

TEST_F(CgroupWriterTest, WritesVersionTwoWithSystemdSlices) {
  Put("cgroup.controllers", "cpuset cpu\n");
  const std::string name =
      "kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod1.slice/"
      "cri-containerd-abc.scope/";
  Put(name + "cpuset.cpus", "\n");
  Put(name + "cpuset.mems", "\n");
  Put(name + "cpuset.cpus.effective", "2-3\n");
  Put(name + "cpuset.mems.effective", "1\n");
  const CpusetWriter::Subject subject = Subject("kubepods-burstable-pod1.slice");
  EXPECT_TRUE(Write(subject).ok()) << Write(subject);
  EXPECT_EQ(Get(name + "cpuset.cpus"), "2-3");
  EXPECT_EQ(Get(name + "cpuset.mems"), "1");
  // A cgroup above has none of them: the kernel gives it all that the other one has.
  Put(name + "cpuset.cpus.effective", "4-7\n");
  EXPECT_THAT(std::string(Message(Write(subject))),
              HasSubstr("cpuset.cpus.effective is \"4-7\", for 2-3"));
  Put(name + "cpuset.cpus.effective", "\n");
  EXPECT_THAT(std::string(Message(Write(subject))), HasSubstr("cpuset.cpus.effective is \"\""));
}

TEST_F(CgroupWriterTest, FindsOneThatTheRuntimeNamesInAHierarchyWithoutSystemd) {
  PutV1("kubepods-pod1.slice:cri-containerd:abc");
  EXPECT_TRUE(Write(Subject("kubepods-pod1.slice")).ok()) << Write(Subject("kubepods-pod1.slice"));
}

TEST_F(CgroupWriterTest, AContainerWithoutACgroupIsNotFound) {
  EXPECT_EQ(Write().code(), StatusCode::kNotFound);
  PutV1();
  EXPECT_EQ(Write(Subject("/kubepods/../../etc")).code(), StatusCode::kInvalidArgument);
}

TEST_F(CgroupWriterTest, CreatesNoFile) {
  fs::create_directories(Path("cpuset/kubepods/pod1/abc"));
  EXPECT_EQ(Write().code(), StatusCode::kNotFound);
  EXPECT_TRUE(fs::is_empty(Path("cpuset/kubepods/pod1/abc")));
}

TEST_F(CgroupWriterTest, FollowsNoLink) {
  PutV1();
  Put("victim", "keep");
  fs::remove(Path("cpuset/kubepods/pod1/abc/cpuset.mems"));
  fs::create_symlink(Path("victim"), Path("cpuset/kubepods/pod1/abc/cpuset.mems"));
  EXPECT_THAT(Why(), HasSubstr("cannot open cpuset.mems"));
  EXPECT_EQ(Get("victim"), "keep");
  EXPECT_EQ(Get("cpuset/kubepods/pod1/abc/cpuset.cpus"), "0-7\n");

  Put("elsewhere/cpuset.cpus", "0-7\n");
  Put("elsewhere/cpuset.mems", "0-1\n");
  fs::remove_all(Path("cpuset/kubepods/pod1/abc"));
  fs::create_directory_symlink(Path("elsewhere"), Path("cpuset/kubepods/pod1/abc"));
  EXPECT_FALSE(Write().ok());
  EXPECT_EQ(Get("elsewhere/cpuset.cpus"), "0-7\n");
}

TEST_F(CgroupWriterTest, IsHeldUpByNoFifo) {
  PutV1();
  const fs::path fifo = Path("cpuset/kubepods/pod1/abc/cpuset.mems");
  fs::remove(fifo);
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  EXPECT_THAT(Why(), HasSubstr("cpuset.mems"));
  const UniqueFd reader(::open(fifo.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  EXPECT_THAT(Why(), HasSubstr("cpuset.mems is no regular file"));
}

TEST_F(CgroupWriterTest, AnswersFromTheLoop) {
  PutV1();
  EventLoop loop;
  CgroupWriter writer(loop, CgroupReader(mount_.path()));
  int answers = 0;
  Status status = Internal("no answer");
  const auto ask = [&] {
    writer.Write(Subject(), {.done =
                                 [&](const Status& result) {
                                   status = result;
                                   if (++answers == 2) loop.Stop();
                                 },
                             .late = [] { FAIL() << "it was in time"; }});
  };
  ask();
  ask();
  EXPECT_EQ(answers, 0) << "never from within";
  loop.Run();
  EXPECT_TRUE(status.ok()) << status;
}

// The write hangs, as in the kernel while its locks are held.
TEST(HungCgroupWriterTest, GivesUpAfterADeadlineAndTellsOfWhatEndsLater) {
  std::promise<void> go;
  EventLoop loop;
  CgroupWriter writer(
      loop,
      [gate = go.get_future().share()](const CpusetWriter::Subject&) {
        gate.wait();
        return OkStatus();
      },
      std::chrono::milliseconds(20));
  std::vector<std::string> told;
  const auto write = [&](const std::string& id) {
    writer.Write({.id = ContainerId(id)},
                 {.done =
                      [&, id](const Status& status) {
                        told.push_back(fmt::format("{} {}", id, Message(status)));
                        loop.Stop();
                      },
                  .late =
                      [&, id] {
                        told.push_back(id + " late");
                        loop.Stop();
                      }});
    loop.Run();
  };
  write("a");
  write("b");
  EXPECT_THAT(told, ElementsAre("a the cgroup took no write within 20 ms",
                                "b a former write to a cgroup hangs"));
  go.set_value();
  loop.Run();
  EXPECT_EQ(told.back(), "a late");
  write("c");
  EXPECT_EQ(told.back(), "c ");
  EXPECT_EQ(told.size(), 4U) << "b was never begun";
}

TEST(BatchedWorkTest, WorkThatIsGivenUpStopsAtTheNextSubject) {
  std::promise<void> begun;
  std::promise<void> go;
  std::vector<int> written;
  EventLoop loop;
  BatchedWork<int, bool> work(loop,
                              [&, gate = go.get_future().share()] {
                                return [&, gate](int subject) {
                                  begun.set_value();
                                  gate.wait();
                                  written.push_back(subject);
                                  return true;
                                };
                              },
                              {.name = "work", .patience = std::chrono::milliseconds(20)});
  std::vector<std::string> told;
  const auto tell = [&](std::string what) {
    told.push_back(std::move(what));
    loop.Stop();
  };
  work.Do({.subjects = {1, 2},
           .done = [&](const std::vector<bool>&) { tell("done"); },
           .failed = [&](const Status& status) { tell(std::string(Message(status))); },
           .late = [&] { tell("late"); }});
  begun.get_future().wait();
  loop.Run();
  go.set_value();
  loop.Run();
  EXPECT_THAT(told, ElementsAre("no answer within 20 ms", "late"));
  EXPECT_THAT(written, ElementsAre(1));
}

}  // namespace
}  // namespace resmgr
