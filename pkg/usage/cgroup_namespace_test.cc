// SPDX-License-Identifier: Apache-2.0
// A daemon in a cgroup namespace, as in a container: it sees the groups from its own one on. Needs
// root and cgroup v2.
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <sstream>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <unistd.h>

#include "pkg/sys/temp_dir.h"
#include "pkg/topology/cpuset_limits.h"
#include "pkg/usage/usage_reader.h"

namespace resmgr {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr const char* kContainer = "abc";

std::string TextOf(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

// This process's group of cgroup v2.
std::string PresentGroup() {
  constexpr std::string_view kLine = "0::";
  std::istringstream lines(TextOf("/proc/self/cgroup"));
  std::string line;
  while (std::getline(lines, line)) {
    if (line.starts_with(kLine)) return line.substr(kLine.size());
  }
  return "/";
}

// The host's groups, and those that a process in one of them sees in a namespace of its own.
class NamespacedGroups {
 public:
  // Why it cannot be made here; "" if it can. Changes the namespaces of the calling thread.
  std::string Make() {
    if (::unshare(CLONE_FS | CLONE_NEWNS) != 0) return "unshare";
    if (::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return "mount";
    if (!Mount(host_) || !fs::exists(Groups(host_) + "/cgroup.procs")) return "mount cgroup2";
    std::error_code error;
    for (const std::string& group : groups_)
      fs::create_directory(Groups(host_) + group, error);
    if (error) return "mkdir";
    if (!Enter(groups_.back())) return "cgroup.procs";
    const bool separate = ::unshare(CLONE_NEWCGROUP) == 0;
    // The group that a namespace begins with stays the same wherever its processes go.
    Enter(before_);
    if (!separate || !Mount(own_)) return "unshare cgroup";
    return "";
  }
  ~NamespacedGroups() {
    std::error_code error;
    for (auto group = groups_.rbegin(); group != groups_.rend(); ++group)
      fs::remove(Groups(host_) + *group, error);
    ::umount2(Groups(own_).c_str(), MNT_DETACH);
    ::umount2(Groups(host_).c_str(), MNT_DETACH);
  }
  NamespacedGroups() = default;
  NamespacedGroups(const NamespacedGroups&) = delete;
  NamespacedGroups& operator=(const NamespacedGroups&) = delete;

  const std::string& host() const { return host_.path(); }
  const std::string& own() const { return own_.path(); }
  std::string pod() const { return top_ + "/pod1"; }

 private:
  static std::string Groups(const TempDir& root) { return root.path() + "/sys/fs/cgroup"; }
  static bool Mount(const TempDir& root) {
    fs::create_directories(Groups(root));
    return ::mount("none", Groups(root).c_str(), "cgroup2", 0, nullptr) == 0;
  }
  bool Enter(const std::string& group) const {
    std::ofstream file(Groups(host_) + group + "/cgroup.procs");
    file << "0" << std::flush;
    return file.good();
  }

  const std::string before_ = PresentGroup();
  const TempDir host_;
  const TempDir own_;
  const std::string top_ = fmt::format("/resmgr-test-{}", ::getpid());
  const std::vector<std::string> groups_ = {top_, top_ + "/pod1", top_ + "/pod1/" + kContainer,
                                            top_ + "/daemon"};
};

void ExpectNothingOutsideOfTheNamespace(const NamespacedGroups& groups) {
  const auto in_hand = std::make_shared<FileInHand>();
  const UsageSubject subject{.id = kContainer, .cgroup_parent = groups.pod()};
  ASSERT_EQ(UsageReader(groups.host(), in_hand).Read({subject}).containers.size(), 1U)
      << "-host-root with the host's groups";

  UsageReader reader(groups.own(), in_hand);
  const UsageCounters first = reader.Read({subject});
  EXPECT_TRUE(first.unified);
  EXPECT_THAT(first.containers, IsEmpty());
  EXPECT_THAT(first.notes, ElementsAre(HasSubstr("no cgroup of a container is found in " +
                                                 groups.own() + "/sys/fs/cgroup")));
  // Paths as the kernel tells them here lead nowhere.
  std::vector<UsageSubject> outside = {subject};
  for (const std::string& parent : {"/.." + groups.pod(), std::string("/../pod1"),
                                    "/../.." + groups.pod(), std::string("/..")}) {
    outside.push_back({.id = fmt::format("{}", kContainer), .cgroup_parent = parent});
    outside.push_back({.id = fmt::format("../pod1/{}", kContainer), .cgroup_parent = parent});
  }
  for (int sample = 0; sample < 100; ++sample) {
    const UsageCounters counters = reader.Read(outside);
    ASSERT_THAT(counters.containers, IsEmpty());
    ASSERT_THAT(counters.notes, IsEmpty()) << "named once";
    ASSERT_EQ(counters.files, first.files) << "no file of a group is read";
  }
}

void ExpectNoOwnGroup() {
  // "0::/../.." here.
  EXPECT_THAT(TextOf("/proc/self/cgroup"), HasSubstr("::/.."));
  EXPECT_FALSE(ReadOwnCgroup({}).has_value());
}

TEST(CgroupNamespaceTest, GroupsOutsideAreNamedOnceAndNeverRead) {
  std::string missing;
  std::thread([&missing] {
    NamespacedGroups groups;
    missing = groups.Make();
    if (!missing.empty()) return;
    ExpectNothingOutsideOfTheNamespace(groups);
    ExpectNoOwnGroup();
  }).join();
  if (!missing.empty()) GTEST_SKIP() << "not allowed here: " << missing;
}

}  // namespace
}  // namespace resmgr
