// SPDX-License-Identifier: Apache-2.0
#include "pkg/cri/runtimes_watch.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/api/runtime_v1.pb.h"
#include "pkg/sys/temp_dir.h"
#include "test/support/fake_runtime/fake_runtime.h"
#include "test/support/wait.h"

namespace resmgr {
namespace {

using testing::HasSubstr;
using testing::SizeIs;
using State = RuntimeView::State;

class RuntimesWatchTest : public testing::Test {
 protected:
  RuntimesWatchTest() {
    EXPECT_TRUE(first_.Start(directory_.File("first.sock")).ok());
    EXPECT_TRUE(second_.Start(directory_.File("second.sock")).ok());
  }

  std::vector<RuntimeView> Described(RuntimesWatch& watch) {
    std::vector<RuntimeView> views;
    watch.Describe([&](std::vector<RuntimeView> described) {
      views = std::move(described);
      loop_.Stop();
    });
    loop_.Run();
    return views;
  }

  EventLoop loop_;
  h2::FlushQueue flushes_{loop_};
  TempDir directory_;
  test::FakeRuntime first_;
  test::FakeRuntime second_;
  Backends backends_{
      {{.name = "default", .socket = directory_.File("first.sock")},
       {.name = "kata", .socket = directory_.File("second.sock"), .handlers = {"kata"}}}};
};

TEST_F(RuntimesWatchTest, TellsWhatEachIsAndHas) {
  backends_.owners().Add(IdOwners::Kind::kContainer, "a", 1);
  backends_.Count(1, true);
  backends_.Count(1, false);
  RuntimesWatch watch(loop_, flushes_, backends_, nullptr);
  const std::vector<RuntimeView> views = Described(watch);
  ASSERT_THAT(views, SizeIs(2));
  EXPECT_EQ(views[0].name, "default");
  EXPECT_EQ(views[0].state, State::kConnected);
  EXPECT_THAT(views[0].version, HasSubstr(" "));
  EXPECT_TRUE(views[0].since.has_value());
  EXPECT_EQ(views[1].handlers, std::vector<std::string>{"kata"});
  EXPECT_EQ(views[1].containers, 1U);
  EXPECT_EQ(views[1].pods, 0U);
  EXPECT_EQ(views[1].calls, 2U);
  EXPECT_EQ(views[1].errors, 1U);
}

TEST_F(RuntimesWatchTest, TellsOneThatGoesHangsAndComesBack) {
  RuntimesWatch watch(loop_, flushes_, backends_, nullptr);
  second_.Script("Version", {.hold = true});
  EXPECT_EQ(Described(watch)[1].state, State::kHanging);
  EXPECT_EQ(Described(watch)[0].state, State::kConnected);
  second_.Stop();
  const RuntimeView away = Described(watch)[1];
  EXPECT_EQ(away.state, State::kAway);
  EXPECT_FALSE(away.last_error.empty());
  second_.ClearScripts();
  ASSERT_TRUE(second_.Start(directory_.File("second.sock")).ok());
  EXPECT_EQ(Described(watch)[1].state, State::kConnected);
}

TEST_F(RuntimesWatchTest, TheOnlyOneIsAskedWhenPeopleWantToKnow) {
  RuntimesWatch watch(loop_, flushes_, backends_.all().front());
  EXPECT_THAT(first_.Calls("Version"), SizeIs(0));
  const std::vector<RuntimeView> views = Described(watch);
  ASSERT_THAT(views, SizeIs(1));
  EXPECT_EQ(views[0].state, State::kConnected);
  EXPECT_FALSE(views[0].since.has_value());
  EXPECT_EQ(views[0].pods, 0U);
  EXPECT_THAT(first_.Calls("Version"), SizeIs(1));
}

TEST_F(RuntimesWatchTest, TheOnlyOneTellsWhatItHas) {
  ::runtime::v1::ListPodSandboxResponse pods;
  for (const char* id : {"a", "b"})
    pods.add_items()->set_id(id);
  first_.Script("ListPodSandbox", {.reply = {{pods.SerializeAsString()}}});
  ::runtime::v1::ListContainersResponse containers;
  for (const char* id : {"c", "d", "e"})
    containers.add_containers()->set_id(id);
  first_.Script("ListContainers", {.reply = {{containers.SerializeAsString()}}});
  ::runtime::v1::StatusResponse status;
  status.add_runtime_handlers()->set_name("");
  status.add_runtime_handlers()->set_name("runc");
  first_.Script("Status", {.reply = {{status.SerializeAsString()}}});
  const HandlerAliases aliases(HandlerAliases::Table{{"pinned", "runc"}});
  RuntimesWatch watch(loop_, flushes_, backends_.all().front(), &aliases);
  const RuntimeView view = Described(watch).front();
  EXPECT_EQ(view.pods, 2U);
  EXPECT_EQ(view.containers, 3U);
  EXPECT_THAT(view.handlers, testing::ElementsAre("", "runc", "pinned"));
}

TEST_F(RuntimesWatchTest, TheOnlyOneThatHangsOrIsAwayHasNoCounts) {
  RuntimesWatch watch(loop_, flushes_, backends_.all().front());
  EXPECT_EQ(Described(watch).front().containers, 0U);
  first_.Script("ListContainers", {.hold = true});
  const auto begin = std::chrono::steady_clock::now();
  const RuntimeView hanging = Described(watch).front();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 10 * RuntimesWatch::kPatience);
  EXPECT_EQ(hanging.pods, 0U);
  EXPECT_FALSE(hanging.containers.has_value());
  EXPECT_FALSE(hanging.last_error.empty());
  first_.Stop();
  EXPECT_FALSE(Described(watch).front().pods.has_value());
}

TEST_F(RuntimesWatchTest, EndsWhileAQuestionIsOpen) {
  auto watch = std::make_unique<RuntimesWatch>(loop_, flushes_, backends_, nullptr);
  watch->Describe([](const std::vector<RuntimeView>&) { FAIL() << "it is gone"; });
  watch.reset();
  test::RunFor(loop_, std::chrono::milliseconds(50));
}

}  // namespace
}  // namespace resmgr
