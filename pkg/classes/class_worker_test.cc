// SPDX-License-Identifier: Apache-2.0
#include "pkg/classes/class_worker.h"

#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "pkg/sys/files.h"
#include "pkg/sys/temp_dir.h"

namespace resmgr {
namespace {

class ClassWorkerTest : public testing::Test {
 protected:
  void Put(const std::string& path, std::string_view text) const {
    directory_.Put("root/" + path, text);
  }
  std::string Root() const { return directory_.path() + "/root/"; }
  std::string At(const std::string& path) const {
    return ReadFile(Root() + path, 1 << 10).value_or("?");
  }
  const TempDir directory_;
};

// A cgroup without a name between two slashes has no file, so there was no partition.
TEST_F(ClassWorkerTest, ACgroupParentMayBeginAndEndWithSlashes) {
  Put("sys/fs/cgroup/cgroup.controllers", "cpuset\n");
  Put("sys/devices/system/cpu/online", "0-7\n");
  for (const char* const cgroup : {"kubepods/", "kubepods/pod/", "kubepods/pod/id/"})
    Put(fmt::format("sys/fs/cgroup/{}cpuset.cpus.exclusive", cgroup), "\n");
  const std::string partition = "sys/fs/cgroup/kubepods/pod/id/cpuset.cpus.partition";
  for (const char* const parent :
       {"/kubepods/pod", "kubepods/pod/", "/kubepods//pod/", "//kubepods/pod//"}) {
    Put(partition, "member\n");
    ClassSubject subject{.container = "ns/pod/c", .id = "id", .cgroup_parent = parent, .cpus = {2}};
    subject.chosen.isolation.isolation.partition = IsolationConfig::Partition::kIsolated;
    ClassesConfig config;
    config.isolation = subject.chosen.isolation.isolation;
    ClassWorker worker({.host_root = Root(), .directory = directory_.path() + "/classes"});
    const ClassReport report = worker.Run({subject}, {}, config);
    EXPECT_EQ(At(partition), "isolated") << parent << ": " << report.classes.at(0).reason;
    worker.Run({}, {}, {});
    EXPECT_EQ(At(partition), "member\n") << parent;
  }
}

}  // namespace
}  // namespace resmgr
