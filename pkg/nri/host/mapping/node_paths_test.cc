// SPDX-License-Identifier: Apache-2.0
#include "pkg/nri/host/mapping/node_paths.h"

#include <filesystem>
#include <optional>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "pkg/sys/temp_dir.h"

namespace resmgr::nri {
namespace {

constexpr const char* kNode = "22 1 8:1 / / rw - ext4 /dev/sda1 rw\n";

class NodePathsTest : public testing::Test {
 protected:
  void Link(const std::string& target, const std::string& name) const {
    ASSERT_EQ(::symlink(target.c_str(), directory_.File(name).c_str()), 0);
  }
  // Resolves with `mine` as the process' own mounts besides the node's.
  std::optional<std::string> Resolve(const std::string& path, const std::string& mine = "") const {
    const MountTable node(kNode);
    const MountTable own(kNode + mine);
    return NodePaths({.node = node, .own = own}).Resolve(path);
  }
  std::optional<std::string> ResolveBelow(const std::string& path) const {
    const MountTable node(kNode);
    const MountTable own("");
    return NodePaths({.node = node, .own = own, .root = directory_.path()}).Resolve(path);
  }
  std::string Hidden(const std::string& root) const {
    return fmt::format("23 22 8:1 {} {} rw - ext4 /dev/sda1 rw\n", root, directory_.path());
  }

  const TempDir directory_;
};

TEST_F(NodePathsTest, FollowsLinks) {
  Link("/", "absolute");
  Link("absolute/tmp", "relative");
  EXPECT_EQ(Resolve(directory_.File("relative")), "/tmp");
  EXPECT_EQ(Resolve(directory_.File("absolute")), "/");
  EXPECT_EQ(Resolve("//tmp//./"), "/tmp");
  EXPECT_EQ(Resolve(directory_.path() + "//none/./x/"), directory_.path() + "/none/x")
      << "a runtime makes it";
}

// PrivateTmp=yes makes such a mount.
TEST_F(NodePathsTest, WhatTheNodeHasElsewhereIsNotKnown) {
  Link("/", "link");
  for (const std::string& path :
       {directory_.File("link"), directory_.File("none"), directory_.path()})
    EXPECT_EQ(Resolve(path, Hidden("/private")), std::nullopt) << path;
  EXPECT_EQ(Resolve("/", Hidden("/private")), "/");
  // ProtectSystem=strict mounts the same file system again.
  EXPECT_EQ(Resolve(directory_.File("link"), Hidden(directory_.path())), "/");
}

TEST_F(NodePathsTest, LinksOfANodeWithAnotherRootStayBelowIt) {
  std::filesystem::create_directories(directory_.File("data/deep"));
  Link("/data", "link");
  Link("../../../../data/deep", "up");
  EXPECT_EQ(ResolveBelow("/link/deep"), "/data/deep");
  EXPECT_EQ(ResolveBelow("/up"), "/data/deep");
}

TEST_F(NodePathsTest, EndlessLinksLeadNowhere) {
  Link("loop", "loop");
  Link("more/more", "more");
  EXPECT_EQ(Resolve(directory_.File("loop")), std::nullopt);
  EXPECT_EQ(Resolve(directory_.File("more")), std::nullopt);
}

TEST_F(NodePathsTest, ParentsCountWhereAllReadThemAlike) {
  Link("/proc/self", "link");
  EXPECT_EQ(Resolve("/proc/../tmp"), "/tmp");
  EXPECT_EQ(Resolve("/.."), "/");
  EXPECT_EQ(Resolve(directory_.File("link") + "/.."), std::nullopt);
  EXPECT_EQ(Resolve("/none/.."), std::nullopt);
  EXPECT_EQ(Resolve(""), std::nullopt);
  EXPECT_EQ(Resolve("tmp"), std::nullopt);
}

}  // namespace
}  // namespace resmgr::nri
