// SPDX-License-Identifier: Apache-2.0
// How a runtime with NRI is asked to update containers: in an answer, by its CRI, or by calls of
// the plugin's own.
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/nri/testing/plugin_front_fixture.h"
#include "test/support/status_matchers.h"
#include "test/support/wait.h"

namespace resmgr::nri {
namespace {

using resmgr::test::Must;
using test::About;
using test::PluginFrontTest;
using test::Told;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;
using ttrpc::test::RunUntil;

// Before each update the brain looks for values that other programs have set.
class PluginFrontThatLooksTest : public PluginFrontTest {
 protected:
  PluginFrontThatLooksTest() : PluginFrontTest({}, true) {}
};

TEST_F(PluginFrontThatLooksTest, OthersLeaveTheCpusInTheSameAnswer) {
  Synchronize();
  const auto created = Must(Create("dsp", true, 1000));
  EXPECT_EQ(created.adjust().linux().resources().cpu().cpus(), "1");
  EXPECT_THAT(Told(created.update()), ElementsAre("id-web 0,2-7"));
  EXPECT_THAT(host_.updates, IsEmpty());

  const auto resized = Must(Resize("dsp", true, 1000, 2000));
  EXPECT_THAT(Told(resized.update()), ElementsAre("id-dsp 1-2", "id-web 0,3-7"));

  ASSERT_TRUE(Tell(api::EVENT_START_CONTAINER, "dsp", true, 2000).ok());
  const auto stopped = Must(Stop("dsp", true, 2000));
  EXPECT_THAT(Told(stopped.update()), ElementsAre("id-web 0-7"));
}

TEST_F(PluginFrontThatLooksTest, AnAnswerDoesNotWaitForUpdatesThatDoNotCome) {
  Synchronize();
  look_.hangs = true;
  const auto created = Must(Create("dsp", true, 1000));
  EXPECT_EQ(created.adjust().linux().resources().cpu().cpus(), "1");
  EXPECT_THAT(created.update(), IsEmpty());
}

// The cgroup lookup outlasts the connection.
TEST_F(PluginFrontThatLooksTest, AnAnswerThatWaitsEndsWithTheConnection) {
  Synchronize();
  const auto leaves =
      loop_.After(std::chrono::milliseconds(5), [this] { ::shutdown(host_fd_, SHUT_RDWR); });
  EXPECT_FALSE(Create("dsp", true, 1000).ok());
  ASSERT_TRUE(RunUntil(loop_, [this] { return !front_.EnsureConnected().ok(); }));
  resmgr::test::RunFor(loop_, 2 * kUpdatesPatience);
  EXPECT_EQ(front_.pending(), 0U);
}

// The test answers the calls of the runtime's CRI.
class PluginFrontWithCriTest : public PluginFrontTest {
 protected:
  struct Asked {
    std::string id;
    ResourceValues values;
    std::function<void(Status)> done;
  };
  PluginFrontWithCriTest()
      : PluginFrontTest([this](const ContainerId& id, const ResourceValues& values,
                               std::function<void(Status)> done) {
          asked_.push_back({std::string(id.value()), values, std::move(done)});
        }) {}
  // Synchronizes with the container "web", for which the runtime is asked to share all CPUs.
  void SynchronizeWith(const std::string& version, const std::string& nri_version = "") {
    ASSERT_TRUE(host_.Configure(test::Containerd(version, nri_version)).ok());
    api::SynchronizeRequest all;
    const auto web = About<api::CreateContainerRequest>("web", false, 100);
    *all.add_pods() = web.pod();
    *all.add_containers() = web.container();
    all.mutable_containers(0)->set_state(api::CONTAINER_RUNNING);
    ASSERT_TRUE(host_.Synchronize(all).ok());
    ASSERT_TRUE(RunUntil(loop_, [&] { return !asked_.empty() || !host_.updates.empty(); }));
  }
  // The event by which the runtime shows the first update that its CRI was asked for.
  api::UpdateContainerRequest Shown() {
    auto shown = About<api::UpdateContainerRequest>("web", false, 0);
    shown.clear_linux_resources();
    AddTo(asked_.front().values, *shown.mutable_linux_resources());
    return shown;
  }

  std::vector<Asked> asked_;
};

TEST_F(PluginFrontWithCriTest, RuntimesWithAnOldNriAreAskedByTheirCri) {
  SynchronizeWith("1.7.24");
  ASSERT_EQ(asked_.size(), 1u);
  EXPECT_EQ(asked_[0].id, "id-web");
  EXPECT_EQ(asked_[0].values.cpus, (CpuSet{0, 1, 2, 3, 4, 5, 6, 7}));
  // The runtime shows it to its plugins before it answers. It does not count as the kubelet's wish.
  const auto shown = Must(Update(Shown()));
  EXPECT_EQ(shown.update_size(), 0);
  const auto wish = Must(Update(Shown()));
  EXPECT_THAT(Told(wish.update()), ElementsAre("id-web 0-7")) << "the second one is";
  asked_[0].done(OkStatus());
  EXPECT_THAT(host_.updates, IsEmpty());
  // The kubelet, which asks for the same update now, gets an answer.
  const auto resized = Must(Update(Shown()));
  EXPECT_THAT(Told(resized.update()), ElementsAre("id-web 0-7"));
}

TEST_F(PluginFrontWithCriTest, AnOwnUpdateThatAnotherPluginHasChangedIsNoWish) {
  SynchronizeWith("1.7.24");
  ASSERT_EQ(asked_.size(), 1u);
  auto changed = Shown();
  changed.mutable_linux_resources()->mutable_memory()->mutable_limit()->set_value(1 << 30);
  changed.mutable_linux_resources()->mutable_cpu()->mutable_shares()->set_value(5);
  const auto shown = Must(Update(changed));
  EXPECT_EQ(shown.update_size(), 0);
}

TEST_F(PluginFrontWithCriTest, RuntimesWithAMendedNriAreAskedByIt) {
  SynchronizeWith("2.4.0", "v0.12.1");
  EXPECT_EQ(host_.updates.size(), 1u);
  EXPECT_THAT(asked_, IsEmpty());
}

// The CRI belongs to another runtime, or does not answer: containers must be moved anyway.
TEST_F(PluginFrontWithCriTest, WithoutTheCriOfTheRuntimeItIsAskedByNri) {
  SynchronizeWith("1.7.24");
  ASSERT_EQ(asked_.size(), 1u);
  asked_[0].done(NotFound("no such container"));
  ASSERT_TRUE(RunUntil(loop_, [&] { return !host_.updates.empty(); }));
  EXPECT_THAT(Told(host_.updates.back().update()), ElementsAre("id-web 0-7"));
  ASSERT_TRUE(Create("dsp", true, 1000).ok());
  host_.updates.clear();
  ASSERT_TRUE(Tell(api::EVENT_REMOVE_CONTAINER, "dsp", true, 1000).ok());
  ASSERT_TRUE(RunUntil(loop_, [&] { return asked_.size() == 2; })) << "it may be there now";
  asked_[1].done(OkStatus());
  EXPECT_THAT(host_.updates, IsEmpty());
}

// A starting runtime serves its NRI slightly before its CRI.
TEST_F(PluginFrontWithCriTest, ACriThatIsNotThereYetIsWaitedFor) {
  SynchronizeWith("1.7.24");
  ASSERT_EQ(asked_.size(), 1u);
  asked_[0].done(Unavailable("nothing listens"));
  ASSERT_TRUE(RunUntil(loop_, [&] { return asked_.size() == 2; }));
  EXPECT_EQ(asked_[1].id, "id-web");
  asked_[1].done(OkStatus());
  EXPECT_THAT(host_.updates, IsEmpty());
}

TEST_F(PluginFrontWithCriTest, ACriThatNeverComesIsGivenUp) {
  SynchronizeWith("1.7.24");
  size_t answered = 0;
  ASSERT_TRUE(RunUntil(loop_, [&] {
    for (; answered < asked_.size(); ++answered)
      asked_[answered].done(Unavailable("nothing listens"));
    return !host_.updates.empty();
  }));
  EXPECT_GT(answered, 5u);
  EXPECT_THAT(Told(host_.updates.back().update()), ElementsAre("id-web 0-7"));
}

TEST_F(PluginFrontWithCriTest, FailuresOfACriThatHasWorkedCount) {
  SynchronizeWith("1.7.24");
  ASSERT_EQ(asked_.size(), 1u);
  asked_[0].done(OkStatus());
  ASSERT_TRUE(Create("dsp", true, 1000).ok());
  ASSERT_TRUE(Tell(api::EVENT_REMOVE_CONTAINER, "dsp", true, 1000).ok());
  ASSERT_TRUE(RunUntil(loop_, [&] { return asked_.size() == 2; }));
  asked_[1].done(Unavailable("the runtime has closed its connection"));
  ASSERT_TRUE(RunUntil(loop_, [&] { return asked_.size() == 3; })) << "it is tried again";
  EXPECT_THAT(host_.updates, IsEmpty());
}

TEST_F(PluginFrontTest, UpdatesThatAreAskedForTogetherAreAnsweredOneByOne) {
  Synchronize();
  ASSERT_TRUE(Create("api", false, 100).ok());
  const ContainerId web("id-web");
  const ContainerId none("id-none");
  const ContainerId api("id-api");
  const ResourceValues one{.cpus = CpuSet{1}};
  const ResourceValues two{.cpus = CpuSet{2}};
  std::map<size_t, StatusCode> told;
  const RuntimeClient::Update updates[] = {{.id = web, .adjustment = one},
                                           {.id = none, .adjustment = one},
                                           {.id = api, .adjustment = two}};
  front_.UpdateContainers(
      updates, [&told](size_t index, const Status& status) { told[index] = status.code(); });
  EXPECT_THAT(told, IsEmpty()) << "within the call";
  ASSERT_TRUE(RunUntil(loop_, [&] { return told.size() == 3; }));
  EXPECT_THAT(told, ElementsAre(Pair(0, StatusCode::kOk), Pair(1, StatusCode::kNotFound),
                                Pair(2, StatusCode::kInternal)))
      << "the runtime carries out the first one of a call";
  ASSERT_EQ(host_.updates.size(), 1U);
  EXPECT_THAT(Told(host_.updates[0].update()), ElementsAre("id-web 1", "id-api 2"));
}

// The runtime's error names no container, and it has carried out the updates of the others.
TEST_F(PluginFrontTest, AnUpdateThatFailsIsNotTheFailureOfOthers) {
  Synchronize();
  ASSERT_TRUE(Create("api", false, 100).ok());
  host_.broken = "id-api";
  const ContainerId web("id-web");
  const ContainerId api("id-api");
  const ResourceValues one{.cpus = CpuSet{1}};
  std::map<size_t, StatusCode> told;
  const RuntimeClient::Update updates[] = {{.id = web, .adjustment = one},
                                           {.id = api, .adjustment = one}};
  front_.UpdateContainers(
      updates, [&told](size_t index, const Status& status) { told[index] = status.code(); });
  ASSERT_TRUE(RunUntil(loop_, [&] { return told.size() == 2; }));
  EXPECT_THAT(told, ElementsAre(Pair(0, StatusCode::kOk), Pair(1, StatusCode::kUnknown)));
  ASSERT_EQ(host_.updates.size(), 3U);
  EXPECT_THAT(Told(host_.updates[0].update()), ElementsAre("id-web 1", "id-api 1"));
  EXPECT_THAT(Told(host_.updates[1].update()), ElementsAre("id-web 1"));
}

}  // namespace
}  // namespace resmgr::nri
