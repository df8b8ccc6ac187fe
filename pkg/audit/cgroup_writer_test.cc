// SPDX-License-Identifier: Apache-2.0
#include "pkg/audit/cgroup_writer.h"

#include <chrono>
#include <filesystem>
#include <fstream>
#include <future>
#include <iterator>
#include <string>
#include <string_view>
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

class CgroupWriterTest : public testing::Test {
 protected:
  fs::path Path(const std::string& path) const { return fs::path(mount_.path()) / path; }
  void Put(const std::string& path, std::string_view text) {
    fs::create_directories(Path(path).parent_path());
    std::ofstream(Path(path)) << text;
  }
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

}  // namespace
}  // namespace resmgr
