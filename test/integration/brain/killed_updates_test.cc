// SPDX-License-Identifier: Apache-2.0
// kill -9 within milliseconds of the reply to a resize or a creation, while the same decision's
// updates of others are under way. The runtime takes such updates back in its records, although
// they may be in force, or has carried them out.
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "pkg/log/log.h"
#include "pkg/policy/registry.h"
#include "pkg/resmgr/testing/test_node.h"
#include "pkg/state/testing/failing_file_systems.h"
#include "policies/static-plus/static_plus_policy.h"
#include "policies/static/static_policy.h"
#include "policies/topology-aware/topology_aware_policy.h"
#include "test/integration/brain/default_policy.h"
#include "test/support/machines/machines.h"
#include "test/support/sanitizer.h"

namespace resmgr::test {
namespace {

using enum QosClass;

struct KilledPolicy {
  const char* name;
  PolicyFactory (*factory)();
};

constexpr KilledPolicy kKilledPolicies[] = {
    {"Static", StaticPolicyFactory},
    {"StaticPlus", StaticPlusPolicyFactory},
    {"TopologyAware", TopologyAwarePolicyFactory},
};

// How far the state's disk was at the kill.
enum class Written { kNothing, kRequest, kAll };
// The runtime's treatment of updates that lost their caller.
enum class Lost { kNotDone, kTakenBack, kOnlyNoted, kDone };

constexpr Written kAllWritten[] = {Written::kNothing, Written::kRequest, Written::kAll};
constexpr Lost kAllLost[] = {Lost::kNotDone, Lost::kTakenBack, Lost::kOnlyNoted, Lost::kDone};

// A resize of a Guaranteed container, or its creation where it is from 0.
struct Change {
  int64_t from = 0;
  int64_t to = 0;
};

constexpr Change kChanges[] = {{500, 1000},  {500, 2000},  {1500, 2000}, {1000, 2000},
                               {2000, 1000}, {1000, 1500}, {1500, 2500}, {1000, 500},
                               {2000, 500},  {0, 1000},    {0, 500}};

class KilledNode {
 public:
  KilledNode(const KilledPolicy& policy, const Machine& machine)
      : node_(machine, [factory = policy.factory()](const Machine& its) {
          return MakeDefaultPolicy(factory, its);
        }) {
    node_.KeepState(files_);
  }

  ContainerId Run(std::string_view name, QosClass qos, int64_t milli_cpu) {
    ContainerId id = node_.Run(name, qos, milli_cpu);
    node_.runtime.AnswerAll();
    if (name == "app") {
      app_ = id;
    } else if (qos != kGuaranteed || milli_cpu % 1000 != 0) {
      sharers_.push_back(id);
    }
    return id;
  }

  // The request of the client reaches the runtime, which does it.
  void Do(const Change& change, Written written) {
    node_.FlushState();
    if (written == Written::kNothing) files_.StopAfter(0);
    change.from == 0 ? BeginCreation(change.to) : BeginResize(change.to);
    node_.FlushState();
    if (written == Written::kRequest) files_.StopAfter(0);
  }
  void Reply() {
    if (app_.value().empty()) {
      app_ = node_.Created(creation_, admission_);
    } else {
      node_.manager().UpdateSucceeded(admission_);
    }
  }
  // Takes the resize back in the records, as of an update that lost its caller although it is
  // carried out.
  void TakeBackResize() {
    node_.runtime.ApplyPart(app_, carried_, FakeRuntimeClient::Part::kForce);
  }
  void ApplyResize() { node_.runtime.Apply(app_, carried_); }

  // Answers this number of updates of others; the following updates may be sent.
  void Answer(int updates) {
    for (; updates > 0 && !node_.runtime.updates.empty(); --updates)
      node_.runtime.Answer(0);
  }

  void KillAndRestart(Lost lost) {
    node_.FlushState();
    for (const FakeRuntimeClient::Update& update : node_.runtime.updates)
      End(update, lost);
    node_.Restart([this] { files_.Resume(); });
  }
  void Settle() {
    EXPECT_TRUE(node_.RunUntil([this] {
      while (!node_.runtime.lists.empty())
        node_.runtime.AnswerList();
      node_.runtime.AnswerAll();
      return node_.runtime.CpusOf(app_) == node_.Placed(app_);
    })) << node_.runtime.CpusOf(app_)
        << " in force, decided " << node_.Placed(app_);
  }

  std::string Reported() { return node_.runtime.Find(app_)->resources.cpuset_cpus.value_or(""); }
  bool HasOwn(const std::string& cpus) { return Cpus(cpus).IsSubsetOf(Cpus(Reported())); }
  std::string Decided() const {
    return fmt::format("{} alone on {}", node_.Placed(app_), node_.Exclusive(app_));
  }
  // Every container, for a failure's message.
  std::string Describe() {
    std::string text;
    node_.manager().snapshot().ForEachContainer([&](const Pod&, const Container& container) {
      const Placement& placement = container.placement;
      text += fmt::format("{} {}m: on {}, {} alone, pool {} ({}), in force {}\n", container.name,
                          container.requirements.cpu_request.value, node_.Placed(container.id),
                          placement.exclusive.ToString(), placement.pool, placement.reason,
                          node_.runtime.CpusOf(container.id));
    });
    return text;
  }
  int64_t Request() const { return node_.Known(app_)->requirements.cpu_request.value; }
  bool SharersLeaveIt() {
    const CpuSet own = Cpus(node_.Exclusive(app_));
    for (const ContainerId& id : sharers_) {
      if (node_.runtime.CpusOf(id) != node_.Placed(id)) return false;
      if (Cpus(node_.runtime.CpusOf(id)).Intersects(own)) return false;
    }
    return true;
  }

  TestNode& node() { return node_; }
  const ContainerId& app() const { return app_; }

 private:
  void BeginCreation(int64_t milli_cpu) {
    creation_ = TestNode::Request(node_.AddPod("app", kGuaranteed), "app", milli_cpu);
    const auto admission = node_.manager().AdmitCreate(CreateRequest(creation_));
    ASSERT_TRUE(admission.ok()) << admission.status();
    admission_ = *admission;
  }
  void BeginResize(int64_t milli_cpu) {
    const LinuxResources wanted = TestNode::Resources(milli_cpu);
    const auto admission = node_.manager().AdmitUpdate(app_, wanted);
    ASSERT_TRUE(admission.ok()) << admission.status();
    admission_ = *admission;
    carried_ = admission_.adjustment;
    if (!carried_.cpu_shares) carried_.cpu_shares = wanted.cpu_shares;
    if (!carried_.cpu_quota) carried_.cpu_quota = wanted.cpu_quota;
  }
  void End(const FakeRuntimeClient::Update& update, Lost lost) {
    switch (lost) {
      case Lost::kNotDone:
        return;
      case Lost::kTakenBack:
        return node_.runtime.ApplyPart(update.id, update.adjustment,
                                       FakeRuntimeClient::Part::kForce);
      case Lost::kOnlyNoted:
        return node_.runtime.ApplyPart(update.id, update.adjustment,
                                       FakeRuntimeClient::Part::kReport);
      case Lost::kDone:
        return node_.runtime.Apply(update.id, update.adjustment);
    }
  }

  CrashingFileSystem disk_{1};
  StoppingFileSystem files_{disk_};
  TestNode node_;
  std::vector<ContainerId> sharers_;
  ContainerId app_;
  CreateRequest creation_;
  Admission admission_;
  ResourceValues carried_;
};

class KilledUpdatesTest : public testing::TestWithParam<KilledPolicy> {
 protected:
  static void SetUpTestSuite() { SetLogLevel(LogLevel::kError); }

  // Another container has the first CPU to grant, and ends after the decision: a decision made anew
  // would find another place.
  static ContainerId Prepare(KilledNode& scene, const Change& change) {
    ContainerId former = scene.Run("former", kGuaranteed, 1000);
    scene.Run("shared", kBurstable, 100);
    scene.Run("fraction", kGuaranteed, 1500);
    if (change.from > 0) scene.Run("app", kGuaranteed, change.from);
    return former;
  }

  template <typename Visit>
  static void ForEachCase(Visit&& visit) {
    constexpr int kStride = kSanitized ? 3 : 1;
    for (const Change& change : kChanges) {
      for (const Written written : kAllWritten) {
        for (const Lost lost : kAllLost) {
          for (int answers = 0; answers <= 3; answers += kStride) {
            SCOPED_TRACE(testing::Message()
                         << "from " << change.from << "m to " << change.to << "m, written "
                         << static_cast<int>(written) << ", lost " << static_cast<int>(lost)
                         << ", answers " << answers);
            visit(change, written, lost, answers);
          }
        }
      }
    }
  }
};

TEST_P(KilledUpdatesTest, AnAnsweredChangeKeepsItsPlace) {
  ForEachCase([](const Change& change, Written written, Lost lost, int answers) {
    KilledNode scene(GetParam(), S1Ht());
    const ContainerId former = Prepare(scene, change);
    scene.Do(change, written);
    if (change.from > 0) scene.ApplyResize();
    scene.Reply();
    const std::string decided = scene.Decided();
    const std::string own = scene.node().Exclusive(scene.app());
    scene.Answer(answers);
    scene.node().Stop(former);
    scene.node().Remove(former);
    scene.KillAndRestart(lost);
    EXPECT_EQ(scene.Request(), change.to) << scene.Describe();
    // While others have not left its exclusive CPUs, any will do.
    const bool known =
        scene.HasOwn(own) && (written != Written::kNothing || scene.Reported() == own);
    if (change.to % 1000 == 0 && known) {
      EXPECT_EQ(scene.Decided(), decided) << scene.Describe();
    } else {
      EXPECT_EQ(Cpus(scene.node().Exclusive(scene.app())).size(), Cpus(own).size())
          << scene.Describe();
    }
    scene.Settle();
    EXPECT_TRUE(scene.SharersLeaveIt());
  });
}

// The client does not know the outcome, and asks again. Until then the runtime's records count.
TEST_P(KilledUpdatesTest, AChangeWithoutAReplyIsAsTheRuntimeTells) {
  ForEachCase([](const Change& change, Written written, Lost lost, int answers) {
    if (change.from == 0) return;
    for (const bool taken_back : {false, true}) {
      SCOPED_TRACE(taken_back);
      KilledNode scene(GetParam(), S1Ht());
      const ContainerId former = Prepare(scene, change);
      const std::string before = scene.Decided();
      scene.Do(change, written);
      const std::string decided = scene.Decided();
      const std::string own = scene.node().Exclusive(scene.app());
      taken_back ? scene.TakeBackResize() : scene.ApplyResize();
      scene.Answer(answers);
      scene.node().Stop(former);
      scene.node().Remove(former);
      scene.KillAndRestart(lost);
      EXPECT_EQ(scene.Request(), taken_back ? change.from : change.to);
      const int64_t now = taken_back ? change.from : change.to;
      const bool known = taken_back || (written != Written::kNothing && scene.HasOwn(own));
      if (now % 1000 == 0 && known) {
        EXPECT_EQ(scene.Decided(), taken_back ? before : decided) << scene.Describe();
      }
      scene.Settle();
      EXPECT_TRUE(scene.SharersLeaveIt());
    }
  });
}

// The container's runtime, one of several, comes back after the daemon does.
class KilledWithRuntimeAwayTest : public testing::TestWithParam<KilledPolicy> {
 protected:
  static void SetUpTestSuite() { SetLogLevel(LogLevel::kError); }

  static ResourceManager::Options Options() {
    ResourceManager::Options options = TestNode::FastOptions();
    options.runtimes.runtimes["vm"].socket = "/run/vm.sock";
    options.runtimes.classes["kata"].runtime = "vm";
    return options;
  }

  static ContainerId RunThere(TestNode& node, int64_t milli_cpu) {
    const PodSandboxId pod = node.AddPod("app", kGuaranteed);
    node.runtime.held.pods.back().runtime_handler = "kata";
    node.manager().PodCreated(node.runtime.held.pods.back());
    ContainerId id = *node.Create(TestNode::Request(pod, "app", milli_cpu));
    node.runtime.AnswerAll();
    node.Start(id);
    return id;
  }
  static void ResizeWithoutReply(TestNode& node, const ContainerId& id, int64_t milli_cpu) {
    const LinuxResources wanted = TestNode::Resources(milli_cpu);
    const auto admission = node.manager().AdmitUpdate(id, wanted);
    ASSERT_TRUE(admission.ok()) << admission.status();
    ResourceValues carried = admission->adjustment;
    if (!carried.cpu_shares) carried.cpu_shares = wanted.cpu_shares;
    if (!carried.cpu_quota) carried.cpu_quota = wanted.cpu_quota;
    node.runtime.Apply(id, carried);
    node.runtime.AnswerAll();
  }
  // The daemon starts without that runtime, and has saved its knowledge when the runtime comes
  // back.
  static void RestartBeforeIt(TestNode& node) {
    FakeRuntimeClient& runtime = node.runtime;
    node.FlushState();
    const RuntimeInventory all = runtime.held;
    std::erase_if(runtime.held.pods, [](const Pod& pod) { return pod.runtime_handler == "kata"; });
    std::erase_if(runtime.held.containers, [](const auto& one) { return one.name == "app"; });
    runtime.held.unclear.why = Unavailable("no runtime vm");
    runtime.held.unclear.runtimes = {"vm"};
    node.Restart();
    while (!runtime.updates.empty())
      runtime.Answer(0, Unavailable("no runtime vm"));
    node.FlushState();
    runtime.held = all;
    node.manager().RuntimeJoined();
    runtime.AnswerList();
  }
};

TEST_P(KilledWithRuntimeAwayTest, AResizeThatHadArrivedKeepsItsPlace) {
  for (const Change& change : kChanges) {
    if (change.from == 0) continue;
    SCOPED_TRACE(testing::Message() << "from " << change.from << "m to " << change.to << "m");
    CrashingFileSystem disk(1);
    TestNode node(
        S1Ht(),
        [factory = GetParam().factory()](const Machine& its) {
          return MakeDefaultPolicy(factory, its);
        },
        Options());
    node.KeepState(disk);
    const ContainerId former = node.Run("former", kGuaranteed, 1000);
    const ContainerId shared = node.Run("shared", kBurstable, 100);
    const ContainerId app = RunThere(node, change.from);
    node.FlushState();
    ResizeWithoutReply(node, app, change.to);
    const CpuSet own = Cpus(node.Exclusive(app));
    // While others have not left its exclusive CPUs, any will do.
    const bool known = own.IsSubsetOf(Cpus(node.runtime.CpusOf(app)));
    node.Stop(former);
    node.Remove(former);
    node.runtime.AnswerAll();
    RestartBeforeIt(node);
    EXPECT_EQ(node.Known(app)->requirements.cpu_request.value, change.to);
    const CpuSet now = Cpus(node.Exclusive(app));
    EXPECT_EQ(now.size(), own.size()) << now.ToString();
    if (known) EXPECT_EQ(now.ToString(), own.ToString()) << node.Known(app)->placement.reason;
    EXPECT_TRUE(node.RunUntil([&] {
      while (!node.runtime.lists.empty())
        node.runtime.AnswerList();
      node.runtime.AnswerAll();
      return node.runtime.CpusOf(app) == node.Placed(app) &&
             node.runtime.CpusOf(shared) == node.Placed(shared);
    }));
    EXPECT_FALSE(Cpus(node.runtime.CpusOf(shared)).Intersects(now));
  }
}

class KilledOnTwoCpusTest : public KilledUpdatesTest {};

// One CPU that is not reserved, for which the next client asks as soon as the daemon is back.
TEST_P(KilledOnTwoCpusTest, TheOnlyCpuStaysWithTheOneThatWasToldSo) {
  for (const Change& change : {Change{500, 1000}, Change{0, 1000}}) {
    for (const Written written : kAllWritten) {
      for (const Lost lost : kAllLost) {
        SCOPED_TRACE(testing::Message()
                     << "from " << change.from << "m, written " << static_cast<int>(written)
                     << ", lost " << static_cast<int>(lost));
        KilledNode scene(GetParam(), MakeMachine(Shape{.cores = 2}));
        const ContainerId other = scene.Run("other", kGuaranteed, 500);
        scene.Run("third", kBestEffort, 0);
        if (change.from > 0) scene.Run("app", kGuaranteed, change.from);
        scene.Do(change, written);
        if (change.from > 0) scene.ApplyResize();
        scene.Reply();
        ASSERT_EQ(scene.Decided(), "1 alone on 1");
        scene.KillAndRestart(lost);
        const auto resized = scene.node().manager().AdmitUpdate(other, TestNode::Resources(1000));
        EXPECT_EQ(resized.status().code(), StatusCode::kResourceExhausted);
        if (resized.ok()) scene.node().manager().UpdateSucceeded(*resized);
        EXPECT_EQ(scene.Decided(), "1 alone on 1");
        scene.Settle();
        EXPECT_EQ(scene.node().runtime.CpusOf(scene.app()), "1");
        EXPECT_TRUE(scene.SharersLeaveIt());
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Policies, KilledUpdatesTest, testing::Values(kKilledPolicies[2]),
                         [](const auto& param_info) { return param_info.param.name; });
INSTANTIATE_TEST_SUITE_P(Long, KilledUpdatesTest,
                         testing::Values(kKilledPolicies[0], kKilledPolicies[1]),
                         [](const auto& param_info) { return param_info.param.name; });
INSTANTIATE_TEST_SUITE_P(Policies, KilledWithRuntimeAwayTest, testing::ValuesIn(kKilledPolicies),
                         [](const auto& param_info) { return param_info.param.name; });

// Under topology-aware, sharing containers do not leave for the reserved CPU, so the change is
// refused.
INSTANTIATE_TEST_SUITE_P(Policies, KilledOnTwoCpusTest,
                         testing::Values(kKilledPolicies[0], kKilledPolicies[1]),
                         [](const auto& param_info) { return param_info.param.name; });

}  // namespace
}  // namespace resmgr::test
