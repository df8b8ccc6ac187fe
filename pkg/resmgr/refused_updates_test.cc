// SPDX-License-Identifier: Apache-2.0
// A container that the runtime cannot update: the values that the next try leaves out, and the
// starts of others, which it must not block for longer than one deadline.
#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/resmgr/history.h"
#include "pkg/resmgr/refusal_log.h"
#include "pkg/resmgr/testing/test_node.h"
#include "pkg/state/testing/failing_file_systems.h"
#include "test/support/captured_log.h"
#include "test/support/sanitizer.h"

namespace resmgr {
namespace {

using test::FirstFitPolicy;
using test::TestNode;
using test::WithCpus;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

using enum QosClass;
using std::chrono::milliseconds;
using SteadyClock = std::chrono::steady_clock;

// The error of runc for a container with cpu.idle.
Status IdleRefusal() {
  return MakeStatus(
      StatusCode::kUnknown,
      "failed to write \"1024\": write /sys/fs/cgroup/kubepods/x/cpu.weight: invalid argument");
}

class RefusedUpdatesTest : public ::testing::Test {
 protected:
  ResourceManager::Options Options() {
    ResourceManager::Options options = TestNode::FastOptions();
    options.observer = &history_;
    options.start_timeout = kDeadline;
    return options;
  }
  test::FakeRuntimeClient& runtime() { return node_.runtime; }
  // From now on each update of the container is refused, and all others succeed.
  void Refuse(const ContainerId& id, const Status& why) {
    refused_ = id;
    why_ = why;
  }
  void AnswerAll() {
    while (!runtime().updates.empty()) {
      const bool refused = runtime().updates.front().id == refused_;
      runtime().Answer(0, refused ? why_ : OkStatus());
    }
    runtime().AnswerLists();
  }
  // The outcome of a start, which is made at the runtime where it may go.
  Status Start(const ContainerId& id) {
    std::optional<Status> decided;
    const auto begin = SteadyClock::now();
    const auto wait =
        node_.manager().AdmitStart(id, [&decided](const Status& status) { decided = status; });
    EXPECT_TRUE(node_.RunUntil([&] {
      AnswerAll();
      return decided.has_value();
    }));
    waited_ = std::chrono::duration_cast<milliseconds>(SteadyClock::now() - begin);
    Status status = decided.value_or(Internal("no decision"));
    if (status.ok()) node_.Started(id);
    return status;
  }
  // A creation whose start is still to come.
  ContainerId Create(std::string_view name) {
    const StatusOr<ContainerId> id = node_.Create(name, kGuaranteed, 1000);
    EXPECT_TRUE(id.ok()) << id.status();
    return id.value_or(ContainerId());
  }

  test::CrashingFileSystem files_{1};  // outlives the node, whose state is written on a thread
  static constexpr milliseconds kDeadline{600};
  static constexpr milliseconds kAtOnce{400};  // also on a busy machine
  test::CapturedLog log_;
  History history_;
  ContainerId refused_;
  Status why_;
  milliseconds waited_{0};
  TestNode node_{test::S1Ht(),  // CPUs 0-7
                 test::FirstFit, Options()};
};

// A value that another program changed in the cgroup may make the runtime refuse the other values.
TEST_F(RefusedUpdatesTest, ARefusedUpdateIsTriedAgainWithTheCpusetAlone) {
  const ContainerId shared = node_.Run("shared", kBurstable, 100);
  node_.manager().SendAgain(shared);
  ASSERT_THAT(runtime().history, ElementsAre(HasSubstr(" shares=")));
  runtime().Answer(0, IdleRefusal());
  EXPECT_THAT(runtime().history, ElementsAre(HasSubstr(" shares="), WithCpus(shared, "0-7")));
}

TEST_F(RefusedUpdatesTest, TheNumbersThatWereRefusedAreTriedAgainWithoutTheCpuset) {
  const ContainerId shared = node_.Run("shared", kBurstable, 100);
  node_.manager().SendAgain(shared);
  runtime().Answer(0, IdleRefusal());
  ASSERT_THAT(runtime().updates, SizeIs(1));
  runtime().Answer(0);
  EXPECT_EQ(node_.manager().LastUpdateError(node_.Known(shared)->key), IdleRefusal())
      << "the problem lasts";
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(node_.RunUntil([this] { return !runtime().updates.empty(); }));
    EXPECT_THAT(runtime().history.back(), AllOf(HasSubstr(" shares="), Not(HasSubstr("cpus="))));
    runtime().Answer(0, IdleRefusal());
  }
  ASSERT_TRUE(node_.RunUntil([this] { return !runtime().updates.empty(); }));
  runtime().Answer(0);
  EXPECT_TRUE(node_.manager().LastUpdateError(node_.Known(shared)->key).ok());
  EXPECT_TRUE(node_.manager().Settled(node_.Known(shared)->key));
}

// The numbers are to replace those that the runtime reports meanwhile.
TEST_F(RefusedUpdatesTest, NumbersThatWereRefusedAreNotTakenForThoseOfAPlugin) {
  node_.KeepState(files_);
  node_.Restart();
  const ContainerId shared = node_.Run("shared", kBurstable, 100);
  // Lets the next list come before the next try of the numbers.
  const auto rested = node_.loop().Now() + 3 * TestNode::FastOptions().refresh_pause;
  node_.RunUntil([&] {
    AnswerAll();
    return node_.loop().Now() >= rested;
  });
  runtime().Find(shared)->resources.cpu_shares = 7;
  node_.manager().SendAgain(shared);
  runtime().Answer(0, IdleRefusal());
  runtime().Answer(0);
  node_.manager().synchronizer().Refresh([](const Status&) {});
  // At once, unless the loop was held up and another list was asked for just before.
  ASSERT_TRUE(node_.RunUntil([this] { return !runtime().lists.empty(); }));
  runtime().AnswerList();
  EXPECT_EQ(node_.Known(shared)->set_later.cpu_shares, std::nullopt);
  ASSERT_TRUE(node_.RunUntil([this] { return !runtime().updates.empty(); }));
  runtime().Answer(0);
  EXPECT_EQ(runtime().Find(shared)->resources.cpu_shares, 102);
  EXPECT_TRUE(node_.manager().Settled(node_.Known(shared)->key));
}

TEST_F(RefusedUpdatesTest, NumbersThatAreRefusedKeepNoStartWaiting) {
  const ContainerId shared = node_.Run("shared", kBurstable, 100);
  node_.manager().SendAgain(shared);
  runtime().Answer(0, IdleRefusal());
  ASSERT_THAT(runtime().updates, SizeIs(1));
  runtime().Answer(0);
  const ContainerId app = Create("app");
  ASSERT_TRUE(node_.RunUntil([&] {
    for (size_t i = 0; i < runtime().updates.size(); ++i)
      runtime().Answer(i, runtime().updates[i].adjustment.cpu_shares ? IdleRefusal() : OkStatus());
    return runtime().CpusOf(shared) == "0,2-7";
  }));
  node_.Start(app);
}

TEST_F(RefusedUpdatesTest, UnderFailTheFirstStartIsRefusedAndLaterOnesGoAtOnce) {
  const ContainerId shared = node_.Run("shared", kBurstable, 100);
  Refuse(shared, IdleRefusal());
  const ContainerId app = Create("app");
  const Status refused = Start(app);
  EXPECT_EQ(refused.code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(Message(refused)),
              AllOf(HasSubstr("container ns/shared/shared may still run on its exclusive CPUs 1"),
                    HasSubstr("cpu.weight: invalid argument"), HasSubstr("cpu.idle")));
  EXPECT_TRUE(Start(app).ok());
  EXPECT_LT(waited_, kAtOnce);
  EXPECT_TRUE(Start(Create("other")).ok());
  EXPECT_LT(waited_, kAtOnce);
  EXPECT_THAT(log_.Text(),
              AllOf(HasSubstr("container ns/other/other is started anyway"),
                    HasSubstr("ns/shared/shared may still run on its exclusive CPUs 2")));
  EXPECT_EQ(log_.Times("cannot update container ns/shared/shared"), 1) << "once for each container";
  EXPECT_EQ(ToString(history_.Last(1).front()->event), "let through");
}

TEST_F(RefusedUpdatesTest, UnderIgnoreAllButTheFirstStartGoAtOnce) {
  node_.manager().SetStartFailurePolicy(FailurePolicy::kIgnore);
  Refuse(node_.Run("shared", kBurstable, 100), IdleRefusal());
  EXPECT_TRUE(Start(Create("app")).ok());
  EXPECT_TRUE(Start(Create("other")).ok());
  EXPECT_LT(waited_, kAtOnce);
}

// One that was refused before any start waited for it has had its time.
TEST_F(RefusedUpdatesTest, TheDeadlineCountsFromTheFirstRefusal) {
  const ContainerId shared = node_.Run("shared", kBurstable, 100);
  Refuse(shared, IdleRefusal());
  const ContainerId app = Create("app");
  const auto until = SteadyClock::now() + kDeadline + milliseconds(20);
  ASSERT_TRUE(node_.RunUntil([&] {
    AnswerAll();
    return SteadyClock::now() > until;
  }));
  EXPECT_EQ(Start(app).code(), StatusCode::kFailedPrecondition) << "the first one is told";
  EXPECT_LT(waited_, kAtOnce);
  EXPECT_TRUE(Start(app).ok());
  EXPECT_LT(waited_, kAtOnce);
}

TEST_F(RefusedUpdatesTest, OneThatDoesNotAnswerBlocksOthersOnceOnly) {
  node_.Run("shared", kBurstable, 100);
  const ContainerId app = Create("app");
  ASSERT_THAT(runtime().updates, SizeIs(1));
  const auto ask = [&](const ContainerId& id) {
    std::optional<Status> decided;
    const auto begin = SteadyClock::now();
    const auto wait =
        node_.manager().AdmitStart(id, [&decided](const Status& status) { decided = status; });
    EXPECT_TRUE(node_.RunUntil([&] { return decided.has_value(); }));
    waited_ = std::chrono::duration_cast<milliseconds>(SteadyClock::now() - begin);
    return decided.value_or(Internal("no decision"));
  };
  EXPECT_EQ(ask(app).code(), StatusCode::kFailedPrecondition);
  EXPECT_TRUE(ask(app).ok());
  EXPECT_LT(waited_, kAtOnce);
}

TEST_F(RefusedUpdatesTest, WhenItsUpdateWorksStartsWaitForItAgain) {
  const ContainerId shared = node_.Run("shared", kBurstable, 100);
  Refuse(shared, IdleRefusal());
  const ContainerId app = Create("app");
  EXPECT_FALSE(Start(app).ok());
  Refuse(ContainerId(), OkStatus());
  ASSERT_TRUE(node_.RunUntil([&] {
    AnswerAll();
    return runtime().CpusOf(shared) == "0,2-7";
  }));
  EXPECT_EQ(log_.Times("the runtime updates container ns/shared/shared again"), 1) << log_.Text();
  EXPECT_TRUE(Start(app).ok());
  EXPECT_EQ(log_.Times("is started anyway"), 0);

  Refuse(shared, IdleRefusal());
  EXPECT_EQ(Start(Create("other")).code(), StatusCode::kFailedPrecondition);
  EXPECT_GE(waited_, kDeadline - milliseconds(10));
}

TEST_F(RefusedUpdatesTest, OneOfHundredsThatIsRefusedForEverDelaysFiftyStartsOnceAtMost) {
  constexpr int kShared = test::kSanitized ? 200 : 500;
  // Answers of hundreds take a while on a busy machine.
  constexpr milliseconds kLongDeadline{test::kSanitized ? 6'000 : 1'500};
  ResourceManager::Options options = Options();
  options.start_timeout = kLongDeadline;
  TestNode node(test::M80(), test::FirstFit, options);
  std::vector<ContainerId> shared;
  shared.reserve(kShared);
  for (int i = 0; i < kShared; ++i)
    shared.push_back(node.Run(fmt::format("shared{}", i), kBurstable, 10));
  const ContainerId stuck = shared[kShared / 2];
  const auto answer = [&] {
    while (!node.runtime.updates.empty())
      node.runtime.Answer(0, node.runtime.updates.front().id == stuck ? IdleRefusal() : OkStatus());
    node.runtime.AnswerLists();
  };
  milliseconds longest{0};
  int refused = 0;
  for (int i = 0; i < 50; ++i) {
    const StatusOr<ContainerId> app = node.Create(fmt::format("app{}", i), kGuaranteed, 1000);
    ASSERT_TRUE(app.ok()) << app.status();
    const auto begin = SteadyClock::now();
    for (bool started = false; !started;) {
      std::optional<Status> decided;
      const auto wait =
          node.manager().AdmitStart(*app, [&decided](const Status& status) { decided = status; });
      ASSERT_TRUE(node.RunUntil([&] {
        answer();
        return decided.has_value();
      }));
      started = decided->ok();
      // On a busy machine the answers of hundreds may take longer than a start waits.
      refused += !started && Message(*decided).find(fmt::format("shared{}", kShared / 2)) !=
                                 std::string_view::npos
                     ? 1
                     : 0;
    }
    node.Started(*app);
    longest =
        std::max(longest, std::chrono::duration_cast<milliseconds>(SteadyClock::now() - begin));
  }
  EXPECT_LT(longest, 2 * kLongDeadline) << "one deadline";
  EXPECT_EQ(refused, 1);
}

TEST(UpdateRemedyTest, FollowsFromTheAnswer) {
  const Pod pod = [] {
    Pod named;
    named.namespace_name = "ns";
    named.name = "web";
    return named;
  }();
  const auto remedy = [&](const Status& why) { return UpdateRemedy(pod, Container(), why); };
  EXPECT_EQ(remedy(IdleRefusal()),
            "if cpu.idle is 1 in its cgroup, set it to 0; or delete pod ns/web");
  EXPECT_EQ(remedy(Internal("unable to set memory limit to 67108864 (current usage: 94765056)")),
            "another program changed its memory limit in the cgroup: restore it, or delete pod "
            "ns/web");
  EXPECT_EQ(remedy(DeadlineExceeded("no answer within 10 s")),
            "its shim may hang: see the runtime's log, or delete pod ns/web");
  EXPECT_EQ(
      remedy(Internal("failed to write \"0-15\": write /sys/fs/cgroup/cpuset/kubepods/podX/Y/"
                      "cpuset.cpus: permission denied")),
      "a cgroup above it may not use these CPUs: add them to cpuset.cpus there, or delete pod "
      "ns/web");
  EXPECT_EQ(remedy(Internal("the disk is on fire")), "delete pod ns/web");
}

// Other programs' values, set by the test.
class FakeOthers final : public ValuesOfOthers {
 public:
  explicit FakeOthers(EventLoop*& loop) : loop_(loop) {}
  void Look(std::vector<Subject> subjects, std::function<void(Found)> done) override {
    looked.insert(looked.end(), subjects.begin(), subjects.end());
    loop_->Post([this, size = subjects.size(), done] { done(Found(size, of_others)); });
  }

  std::vector<Subject> looked;
  ResourceValues of_others;

 private:
  EventLoop*& loop_;
};

class ValuesOfOthersTest : public ::testing::Test {
 protected:
  ResourceManager::Options Options() {
    ResourceManager::Options options = TestNode::FastOptions();
    options.others = &others_;
    return options;
  }
  test::FakeRuntimeClient& runtime() { return node_.runtime; }
  // A shared container that makes room for another one; returns the values that it is sent.
  std::string Moved() {
    shared_ = node_.Run("shared", kBurstable, 100);
    EXPECT_TRUE(node_.Create("app", kGuaranteed, 1000).ok());
    return NextUpdate();
  }
  std::string NextUpdate() {
    EXPECT_TRUE(node_.RunUntil([this] { return !runtime().updates.empty(); }));
    const std::string sent = runtime().history.back();
    runtime().Answer(0);
    return sent.substr(sent.find(' ') + 1);
  }
  ContainerKey Key() const { return node_.Known(shared_)->key; }

  test::CrashingFileSystem files_{1};  // outlives the node
  EventLoop* loop_ = nullptr;
  FakeOthers others_{loop_};
  ContainerId shared_;
  TestNode node_{test::S1Ht(),  // CPUs 0-7
                 [this](const Machine& machine) {
                   loop_ = &node_.loop();
                   return std::make_unique<FirstFitPolicy>(machine);
                 },
                 Options()};
};

TEST_F(ValuesOfOthersTest, AMoveCarriesTheCpusetAloneWhereNobodyElseSetsAnything) {
  EXPECT_EQ(Moved(), "cpus=0,2-7");
  ASSERT_THAT(others_.looked, SizeIs(1));
  EXPECT_EQ(others_.looked[0].known, (ResourceValues{.cpu_quota = 10'000, .cpu_period = 100'000}));
}

TEST_F(ValuesOfOthersTest, AMoveLeavesTheValuesOfOthersInForce) {
  others_.of_others = {
      .cpu_quota = 150'000, .cpu_period = 100'000, .memory_limit = 2048, .memory_swap_limit = 4096};
  EXPECT_EQ(Moved(), "cpus=0,2-7 quota=150000 period=100000 memory=2048 swap=4096");
  EXPECT_TRUE(node_.manager().Settled(Key())) << "they are not the policy's";
}

// The runtime has noted them, and writes them again with each update that does not say otherwise.
TEST_F(ValuesOfOthersTest, ValuesThatWereTakenBackAreNotPutInForceAgain) {
  others_.of_others = {
      .cpu_quota = 150'000, .cpu_period = 100'000, .memory_limit = 2048, .memory_swap_limit = 4096};
  Moved();
  others_.of_others = {};
  EXPECT_TRUE(node_.Create("second", kGuaranteed, 1000).ok());
  EXPECT_EQ(NextUpdate(), "cpus=0,3-7 quota=10000 period=100000 memory=-1 swap=-1");
  EXPECT_TRUE(node_.Create("third", kGuaranteed, 1000).ok());
  EXPECT_EQ(NextUpdate(), "cpus=0,4-7") << "nothing is noted any more";
}

// The runtime reports these values since an update carried them; they do not come from a plugin.
TEST_F(ValuesOfOthersTest, AReportOfThemIsNoPluginsDoing) {
  node_.KeepState(files_);
  node_.Restart();
  others_.of_others = {.cpu_quota = 150'000, .cpu_period = 100'000};
  Moved();
  ASSERT_EQ(runtime().Find(shared_)->resources.cpu_quota, 150'000);
  bool listed = false;
  node_.manager().synchronizer().Refresh([&listed](const Status&) { listed = true; });
  ASSERT_TRUE(node_.RunUntil([&] {
    runtime().AnswerLists();
    return listed;
  }));
  EXPECT_EQ(node_.Known(shared_)->set_later.cpu_quota, std::nullopt);
  others_.of_others = {};
  EXPECT_TRUE(node_.Create("second", kGuaranteed, 1000).ok());
  EXPECT_EQ(NextUpdate(), "cpus=0,3-7 quota=10000 period=100000");
}

TEST_F(ValuesOfOthersTest, AReconnectPutsThemBackNeither) {
  others_.of_others = {.cpu_quota = 150'000, .cpu_period = 100'000};
  Moved();
  node_.Reconnect();
  EXPECT_THAT(runtime().updates, IsEmpty());
  EXPECT_TRUE(node_.manager().Settled(Key()));
}

TEST_F(ValuesOfOthersTest, ARepairPutsThemBack) {
  others_.of_others = {.cpu_quota = 150'000, .cpu_period = 100'000};
  Moved();
  node_.manager().SendAgain(Key());
  EXPECT_EQ(NextUpdate(), "cpus=0,2-7 shares=102 quota=10000 period=100000");
  EXPECT_TRUE(node_.manager().Settled(Key()));
}

TEST_F(ValuesOfOthersTest, NothingIsAddedWhileTheKubeletChangesIt) {
  others_.of_others = {.memory_limit = 2048};
  shared_ = node_.Run("shared", kBurstable, 100);
  EXPECT_TRUE(node_.Create("app", kGuaranteed, 1000).ok());
  const auto admission = node_.manager().AdmitUpdate(shared_, TestNode::Resources(200));
  ASSERT_TRUE(admission.ok());
  EXPECT_EQ(NextUpdate(), "cpus=0,2-7");
  node_.manager().UpdateSucceeded(*admission);
}

}  // namespace
}  // namespace resmgr
