// SPDX-License-Identifier: Apache-2.0
#include "pkg/resmgr/log_observer.h"

#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/resmgr/testing/manager_fixture.h"

namespace resmgr {
namespace {

using test::TestNode;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

using enum QosClass;

// The fixture reads the log from "[resmgr] " on.
class LogObserverTest : public test::ManagerFixture {
 protected:
  LogObserverTest() {
    SetLogWriter([this](std::string_view line) {
      const size_t at = line.find("[resmgr] ");
      if (at == std::string_view::npos) return;
      line.remove_prefix(at + std::string_view("[resmgr] ").size());
      if (line.ends_with('\n')) line.remove_suffix(1);
      lines_.emplace_back(line);
    });
  }
  ~LogObserverTest() override {
    ConfigureLogging({});
    SetLogWriter(nullptr);
  }

  // Since the last question.
  std::vector<std::string> Lines() { return std::exchange(lines_, {}); }

  std::vector<std::string> lines_;
};

TEST_F(LogObserverTest, EveryActIsOneLine) {
  node_.Run("web", kBurstable, 100);
  EXPECT_THAT(Lines(), ElementsAre("placed ns/web/web: CPUs 0-7, shared (first-fit)"));
  node_.Run("db", kBurstable, 100);
  Lines();
  const ContainerId dsp = node_.Run("dsp", kGuaranteed, 1000);
  EXPECT_THAT(Lines(),
              ElementsAre("placed ns/dsp/dsp: CPU 1, exclusive (first-fit); moved 2 shared "
                          "containers 0-7 -> 0,2-7"));
  const auto update = manager().AdmitUpdate(dsp, TestNode::Resources(2000));
  ASSERT_TRUE(update.ok());
  manager().UpdateSucceeded(*update);
  EXPECT_THAT(Lines(), ElementsAre("moved ns/dsp/dsp: CPU 1, exclusive -> CPUs 1-2, exclusive (its "
                                   "resources changed); moved 2 shared containers 0,2-7 -> 0,3-7"));
  node_.Stop(dsp);
  EXPECT_THAT(Lines(), ElementsAre("released ns/dsp/dsp: CPUs 1-2, exclusive (it ended); moved 2 "
                                   "shared containers 0,3-7 -> 0-7"));
}

TEST_F(LogObserverTest, ARefusalIsOneWarning) {
  EXPECT_FALSE(node_.Create("large", kGuaranteed, 9000).ok());
  EXPECT_THAT(Lines(), ElementsAre(AllOf(HasSubstr("refused ns/large/large: "),
                                         HasSubstr("needs 9 CPUs, 7 are free"))));
  const ContainerId app = node_.Run("app", kGuaranteed, 1000);
  Lines();
  EXPECT_FALSE(manager().AdmitUpdate(app, TestNode::Resources(9000)).ok());
  EXPECT_THAT(Lines(), ElementsAre(HasSubstr("refused an update of ns/app/app: ")));
}

TEST_F(LogObserverTest, ACreationThatFailsGivesItsPlaceBack) {
  const PodSandboxId pod = node_.AddPod("app", kGuaranteed);
  const auto admission = manager().AdmitCreate(TestNode::Request(pod, "main", 2000));
  ASSERT_TRUE(admission.ok());
  Lines();
  manager().CreateFailed(admission->key);
  EXPECT_THAT(Lines(),
              ElementsAre("released ns/app/main: CPUs 1-2, exclusive (it was not created)"));
}

TEST_F(LogObserverTest, AChangeOfThePolicyTellsItsMoves) {
  const ContainerId app = node_.Run("app", kGuaranteed, 1000);
  node_.Run("web", kBurstable, 100);
  node_.Run("db", kBurstable, 100);
  Lines();
  auto next = std::make_unique<test::FirstFitPolicy>(node_.machine());
  next->spoil = [&](Plan& plan) {
    plan.changes.clear();
    node_.manager().snapshot().ForEachContainer([&plan](const Pod&, const Container& container) {
      plan.Change(container.key).cpus = CpuSet{0, 1, 2};
    });
  };
  manager().SetPolicy(std::move(next), [](const Status&) {});
  EXPECT_THAT(
      Lines(),
      ElementsAre(HasSubstr("policy first-fit takes over 3 containers"),
                  HasSubstr("moved container ns/app/app CPU 1, exclusive -> CPUs 0-2, shared "
                            "(policy first-fit takes over)"),
                  "moved 2 shared containers 0,2-7 -> 0-2 (policy first-fit takes over)"));
}

TEST_F(LogObserverTest, WhatAListFindsIsOneLineEach) {
  node_.Run("web", kBurstable, 100);
  const ContainerId dsp = node_.Run("dsp", kGuaranteed, 2000);
  Lines();
  node_.Restart();
  EXPECT_THAT(Lines(), ElementsAre("adopted ns/dsp/dsp: CPUs 1-2, exclusive (first-fit)",
                                   "adopted ns/web/web: CPUs 0,3-7, shared (first-fit)",
                                   "the runtime holds 2 pods and 2 containers"));
  node_.Reconnect();
  EXPECT_THAT(Lines(), ElementsAre("the runtime holds 2 pods and 2 containers"))
      << "they are known";
  node_.Crash(dsp);
  node_.Reconnect();
  EXPECT_THAT(Lines(), ElementsAre("released ns/dsp/dsp: CPUs 1-2, exclusive (it ended)",
                                   HasSubstr("0,3-7 -> 0-7 (by what the runtime holds)"),
                                   "the runtime holds 2 pods and 2 containers"));
}

TEST_F(LogObserverTest, WhatTheRuntimeHasNoMoreIsReleased) {
  const ContainerId dsp = node_.Run("dsp", kGuaranteed, 2000);
  Lines();
  runtime().Remove(dsp);
  node_.Reconnect();
  EXPECT_THAT(Lines(), ElementsAre("released ns/dsp/dsp: CPUs 1-2, exclusive (it is gone)",
                                   "the runtime holds 1 pod and 0 containers"));
}

TEST_F(LogObserverTest, WhatAListFindsOfManyIsOneLine) {
  node_.Run("dsp", kGuaranteed, 2000);
  for (int i = 0; i < 20; ++i)
    node_.Run(fmt::format("web{}", i), kBurstable, 100);
  Lines();
  node_.Restart();
  EXPECT_THAT(Lines(), ElementsAre("adopted 21 containers: 1 with exclusive CPUs 1-2 (first-fit)",
                                   "the runtime holds 21 pods and 21 containers"));
  ConfigureLogging({.debug = SourceFilter::All()});
  node_.Restart();
  EXPECT_THAT(Lines(), ::testing::Contains(HasSubstr("adopted ns/web7/web7: CPUs 0,3-7, shared")));
  ConfigureLogging({});
  Lines();
  runtime().held.containers.clear();
  node_.Reconnect();
  EXPECT_THAT(Lines(), ElementsAre("released 21 containers: 1 with exclusive CPUs 1-2 (they ended "
                                   "or are gone)",
                                   "the runtime holds 21 pods and 0 containers"));
}

TEST_F(LogObserverTest, NamesCannotForgeLines) {
  node_.Run("x\n[resmgr] placed ns/y/y: CPU 1", kBurstable, 100);
  EXPECT_THAT(Lines(), ElementsAre(HasSubstr("placed ns/x\\x0a[resmgr] placed")));
}

TEST_F(LogObserverTest, NothingIsSaidBelowTheLevel) {
  ConfigureLogging({.level = LogLevel::kError});
  node_.Run("web", kBurstable, 100);
  node_.Stop(node_.Run("app", kGuaranteed, 1000));
  EXPECT_FALSE(node_.Create("large", kGuaranteed, 9000).ok());
  EXPECT_THAT(Lines(), IsEmpty());
}

class ExplainingPolicy : public test::FirstFitPolicy {
 public:
  using FirstFitPolicy::FirstFitPolicy;
  std::vector<std::string> Explain(ContainerKey) const override { return {"all CPUs: 8 free"}; }
};

TEST_F(LogObserverTest, DebuggingAddsTheCandidates) {
  TestNode node(test::S1Ht(),
                [](const Machine& machine) { return std::make_unique<ExplainingPolicy>(machine); });
  node.Run("web", kBurstable, 100);
  for (const std::string& line : Lines())
    EXPECT_EQ(line.find("all CPUs: 8 free"), std::string::npos);
  ConfigureLogging({.debug = SourceFilter::All()});
  node.Run("db", kBurstable, 100);
  EXPECT_THAT(Lines(), ::testing::Contains(EndsWith("all CPUs: 8 free")));
}

TEST(PlaceTextTest, SaysWhatIsShared) {
  EXPECT_EQ(Describe(Place{}), "any CPU");
  EXPECT_EQ(Describe(Place{.cpus = CpuSet{1, 2}, .mems = NodeSet{0}}),
            "CPUs 1-2, shared, memory node 0");
  EXPECT_EQ(Describe(Place{.cpus = CpuSet{1, 2, 3}, .exclusive = CpuSet{2}}),
            "CPUs 1-3, of which 2 is exclusive");
}

}  // namespace
}  // namespace resmgr
