// SPDX-License-Identifier: Apache-2.0
#include "pkg/hooks/hook_servers.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace resmgr::hooks {
namespace {

using std::chrono::seconds;
using testing::ElementsAre;
using testing::IsEmpty;

constexpr HookPoint kUpdate = HookPoint::kPreUpdateContainerResources;

std::string Text(const std::string& endpoint, const std::string& more = "") {
  return R"({"remote-endpoint": ")" + endpoint +
         R"(", "runtime-hooks": ["PreUpdateContainerResources"])" + more + "}";
}

class HookServersTest : public testing::Test {
 protected:
  std::vector<std::string> Asked(HookPoint point) const {
    std::vector<std::string> files;
    for (const auto& server : servers_.ServersOf(point))
      files.push_back(server->settings().file);
    return files;
  }

  EventLoop loop_;
  h2::FlushQueue flushes_{loop_};
  HookServers servers_{loop_, flushes_, seconds(2)};
};

TEST_F(HookServersTest, AreAskedInTheOrderOfTheirFiles) {
  servers_.Update({{"b.json", Text("/run/b")}, {"a.json", Text("/run/a")}});
  EXPECT_THAT(Asked(kUpdate), ElementsAre("a.json", "b.json"));
  EXPECT_THAT(Asked(HookPoint::kPreRunPodSandbox), IsEmpty());
}

// K03, and what koordlet's writing in place looks like half-way.
TEST_F(HookServersTest, ABadVersionLeavesTheOneBeforeInForce) {
  servers_.Update({{"a.json", Text("/run/a")}, {"new.json", ""}});
  EXPECT_THAT(Asked(kUpdate), ElementsAre("a.json"));
  const auto before = servers_.All().front();
  for (const std::string bad : {"", "{", R"({"remote-endpoint": "x"})"}) {
    servers_.Update({{"a.json", bad}});
    ASSERT_THAT(Asked(kUpdate), ElementsAre("a.json")) << bad;
    EXPECT_EQ(servers_.All().front(), before);
  }
  servers_.Update({{"a.json", Unavailable("the disk does not answer")}});
  EXPECT_THAT(Asked(kUpdate), ElementsAre("a.json"));
  servers_.Update({{"a.json", Text("/run/a", R"(, "failure-policy": "Fail")")}});
  EXPECT_EQ(servers_.All().front()->settings().failure, FailurePolicy::kFail);
}

TEST_F(HookServersTest, AnotherTimeoutCountsForFilesWithoutOne) {
  const std::vector<HookFileText> files = {{"a.json", Text("/run/a")},
                                           {"b.json", Text("/run/b", R"(, "timeout": "1s")")}};
  servers_.Update(files);
  const auto before = servers_.All();
  servers_.SetTimeout(seconds(7));
  servers_.Update(files);
  EXPECT_EQ(servers_.All()[0]->settings().timeout, seconds(7));
  EXPECT_EQ(servers_.All()[1]->settings().timeout, seconds(1));
  EXPECT_EQ(&servers_.All()[0]->connection(), &before[0]->connection());
}

TEST_F(HookServersTest, AFileThatIsGoneHasNoServer) {
  servers_.Update({{"a.json", Text("/run/a")}});
  const auto held = servers_.ServersOf(kUpdate);
  servers_.Update({});
  EXPECT_THAT(Asked(kUpdate), IsEmpty());
  // A call that has begun may still ask it.
  EXPECT_EQ(held.front()->settings().endpoint, "/run/a");
}

TEST_F(HookServersTest, ConnectionsBelongToEndpoints) {
  servers_.Update({{"a.json", Text("/run/a")}, {"b.json", Text("/run//a")}});
  const auto first = servers_.All();
  EXPECT_EQ(&first[0]->connection(), &first[1]->connection());
  servers_.Update({{"a.json", Text("/run/a", R"(, "timeout": "1s")")}});
  EXPECT_EQ(servers_.All().front()->settings().timeout, seconds(1));
  EXPECT_EQ(&servers_.All().front()->connection(), &first[0]->connection());
  // The last file that names it is renamed.
  servers_.Update({{"z.json", Text("/run/a")}});
  EXPECT_EQ(&servers_.All().front()->connection(), &first[0]->connection());
  servers_.Update({{"z.json", Text("/run/other")}});
  EXPECT_EQ(servers_.All().front()->connection().endpoint(), "/run/other");
}

}  // namespace
}  // namespace resmgr::hooks
