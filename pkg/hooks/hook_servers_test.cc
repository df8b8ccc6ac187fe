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

// Input K03, and the partial file while koordlet writes it in place.
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
  ASSERT_EQ(servers_.Outdated().size(), 1U);
  EXPECT_EQ(Message(servers_.Outdated().at("a.json")), "the disk does not answer");
  servers_.Update({{"a.json", Text("/run/a", R"(, "failure-policy": "Fail")")}});
  EXPECT_EQ(servers_.All().front()->settings().failure, FailurePolicy::kFail);
  EXPECT_THAT(servers_.Outdated(), IsEmpty());
}

TEST_F(HookServersTest, ABadVersionThatComesBackIsToldOnce) {
  const auto count = [](const std::string& text, std::string_view what) {
    size_t found = 0;
    for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1))
      ++found;
    return found;
  };
  testing::internal::CaptureStderr();
  // koordlet writes its file in place at each start.
  for (size_t i = 0; i < 20; ++i) {
    servers_.Update({{"a.json", Text("/run/a", R"(, "unknown": 1)")}});
    servers_.Update({{"a.json", Text("/run/a").substr(0, 20 + i)}});
    servers_.Update({{"a.json", ""}});
    servers_.Update({{"b.json", ""}});
    servers_.Update({});
  }
  const std::string log = testing::internal::GetCapturedStderr();
  EXPECT_EQ(
      count(log, "hook file a.json is ignored, the version before stays in force: it is empty"), 1U)
      << log;
  EXPECT_EQ(count(log, "hook file a.json: "), 1U + 20U) << "and each new server: " << log;
  EXPECT_LE(count(log, "hook file a.json is ignored"), 8U) << log;
  EXPECT_EQ(count(log, "hook file b.json is ignored"), 1U) << log;
  testing::internal::CaptureStderr();
  servers_.Update({{"c.json", "{"}});
  EXPECT_EQ(count(testing::internal::GetCapturedStderr(), "hook file c.json is ignored"), 1U)
      << "another file";
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
  // A call that has begun may still ask the former server.
  EXPECT_EQ(held.front()->settings().endpoint, "/run/a");
}

TEST_F(HookServersTest, AFileBeyondTheLimitRefusesWhereItSaysFail) {
  const std::string fails = Text("/run/z", R"(, "failure-policy": "Fail")");
  servers_.Update({{"a.json", Text("/run/a")}, {"z.json", fails}});
  ASSERT_THAT(Asked(kUpdate), ElementsAre("a.json", "z.json"));
  EXPECT_THAT(servers_.Unusable(), IsEmpty());
  // Another file precedes it now.
  servers_.Update({{"a.json", Text("/run/a")},
                   {"y.json", Text("/run/y"), /*beyond_limit=*/true},
                   {"z.json", fails, /*beyond_limit=*/true}});
  EXPECT_THAT(Asked(kUpdate), ElementsAre("a.json", "z.json"));
  EXPECT_EQ(servers_.All().size(), 1U);
  ASSERT_EQ(servers_.Unusable().size(), 2U);
  EXPECT_EQ(servers_.Unusable()[0]->settings().failure, FailurePolicy::kIgnore);
  EXPECT_EQ(servers_.Unusable()[1]->settings().failure, FailurePolicy::kFail);
  StatusOr<std::string> answer = std::string();
  const auto last = servers_.ServersOf(kUpdate).back();
  last->Ask(kUpdate, "", [&](StatusOr<std::string> failure) {
    answer = std::move(failure);
    loop_.Stop();
  });
  EXPECT_TRUE(answer.ok()) << "answers never come from within";
  loop_.Run();
  EXPECT_EQ(answer.status().code(), StatusCode::kUnavailable);
  EXPECT_THAT(std::string(Message(answer.status())), testing::HasSubstr("more than 64 hook files"));
  // The limit includes it again.
  servers_.Update({{"z.json", fails}});
  EXPECT_THAT(servers_.Unusable(), IsEmpty());
  EXPECT_EQ(servers_.All().size(), 1U);
}

TEST_F(HookServersTest, AFileThatCannotBeUsedRefusesWhereItSaysFail) {
  const std::string hooks = R"("runtime-hooks": ["PreUpdateContainerResources", "unknown", 1])";
  servers_.Update(
      {{"no-endpoint.json", R"({"failure-policy": "Fail", )" + hooks + "}"},
       {"bad-endpoint.json", R"({"remote-endpoint": 1, "failure-policy": "fail", )" + hooks + "}"},
       {"ignores.json", "{" + hooks + "}"},
       {"half.json", R"({"failure-policy": "Fail", "runtime-ho)"},
       {"unread.json", InvalidArgument("it is not a regular file")}});
  EXPECT_THAT(Asked(kUpdate), ElementsAre("bad-endpoint.json", "no-endpoint.json"));
  EXPECT_EQ(servers_.Unusable().size(), 5U);
  for (const auto& unusable : servers_.Unusable()) {
    const std::string& file = unusable->settings().file;
    EXPECT_EQ(unusable->settings().failure == FailurePolicy::kFail, file.ends_with("endpoint.json"))
        << file;
  }
  servers_.Update({{"half.json", Text("/run/a")}});
  EXPECT_THAT(servers_.Unusable(), IsEmpty());
}

TEST_F(HookServersTest, ConnectionsBelongToEndpoints) {
  servers_.Update({{"a.json", Text("/run/a")}, {"b.json", Text("/run//a")}});
  const auto first = servers_.All();
  EXPECT_EQ(&first[0]->connection(), &first[1]->connection());
  servers_.Update({{"a.json", Text("/run/a", R"(, "timeout": "1s")")}});
  EXPECT_EQ(servers_.All().front()->settings().timeout, seconds(1));
  EXPECT_EQ(&servers_.All().front()->connection(), &first[0]->connection());
  // The last file with this endpoint is renamed.
  servers_.Update({{"z.json", Text("/run/a")}});
  EXPECT_EQ(&servers_.All().front()->connection(), &first[0]->connection());
  servers_.Update({{"z.json", Text("/run/other")}});
  EXPECT_EQ(servers_.All().front()->connection().endpoint(), "/run/other");
}

}  // namespace
}  // namespace resmgr::hooks
