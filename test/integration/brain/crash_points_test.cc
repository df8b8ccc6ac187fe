// SPDX-License-Identifier: Apache-2.0
// kill -9 at every change of the stored state, and at every step of containers' lives beside it,
// with every policy.
#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
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

// CPU 0 is reserved.
struct PolicyCase {
  const char* name;
  PolicyFactory (*factory)();
  const char* shared_cpus;  // with those that are exclusive at the moment
};

constexpr PolicyCase kCases[] = {
    {"Static", StaticPolicyFactory, "0-7"},
    {"StaticPlus", StaticPlusPolicyFactory, "1-7"},
    {"TopologyAware", TopologyAwarePolicyFactory, "1-7"},
};

// A node whose daemon remembers; its life is a list of steps.
class Scene {
 public:
  explicit Scene(const PolicyCase& policy)
      : shared_cpus_(Cpus(policy.shared_cpus)),
        node_(S1Ht(), [factory = policy.factory()](const Machine& machine) {
          return MakeDefaultPolicy(factory, machine);
        }) {
    node_.KeepState(files_);
  }

  static constexpr int kSteps = 16;

  // The state's disk has written everything before the next step.
  void Do(int step) {
    switch (step) {
      case 0:
        return Run("shared", kBurstable, 100);
      case 1:
        return Run("app", kGuaranteed, 3000);
      case 2:
        return BeginCreation("late", kGuaranteed, 2000);
      case 3:
        // The daemon does not know the container yet.
        ids_["late"] = node_.Hold(creation_, admission_);
        return;
      case 4:
        node_.manager().CreateSucceeded(admission_.key, ids_.at("late"));
        return;
      case 5:
        node_.runtime.AnswerAll();
        return;
      case 6:
        node_.Start(ids_.at("late"));
        return;
      case 7:
        return BeginResize("app", 1000);
      case 8:
        return EndResize("app", true);
      case 9:
        node_.runtime.AnswerAll();
        return;
      case 10:
        return BeginResize("late", 4000);
      case 11:
        return EndResize("late", false);
      case 12:
        node_.runtime.AnswerAll();
        return;
      case 13:
        node_.Stop(ids_.at("app"));
        return;
      case 14:
        node_.runtime.AnswerAll();
        return;
      default:
        node_.Remove(ids_.at("app"));
        return;
    }
  }
  void Flush() { node_.FlushState(); }

  StoppingFileSystem& files() { return files_; }

  // After a kill: all values in force stay if the rules allow it, and the node comes to rest within
  // the rules.
  void ExpectNothingLost() {
    std::map<std::string, std::string> in_force;
    CpuSet own;
    for (const auto& [name, id] : ids_) {
      const RuntimeContainer* const held = node_.runtime.Find(id);
      if (held == nullptr || held->state == ContainerState::kExited) continue;
      in_force[name] = node_.runtime.CpusOf(id);
      if (name != "shared") own |= CpuSet::Parse(in_force[name]).value_or(CpuSet());
    }
    // Containers of these calls: their updates may be in force or not, whatever the runtime says.
    std::set<ContainerId> under_way;
    if (resizing_) under_way.insert(*resizing_);
    for (const FakeRuntimeClient::Update& update : node_.runtime.updates)
      under_way.insert(update.id);
    files_.Resume();
    node_.runtime.history.clear();
    node_.Restart();
    std::set<ContainerId> asked;
    for (const FakeRuntimeClient::Update& update : node_.runtime.updates)
      asked.insert(update.id);
    node_.runtime.AnswerAll();
    for (const auto& [name, cpus] : in_force) {
      const ContainerId& id = ids_.at(name);
      EXPECT_EQ(node_.runtime.CpusOf(id), node_.Placed(id)) << name;
      if (name == "shared") continue;
      EXPECT_EQ(node_.runtime.CpusOf(id), cpus) << name << " was moved";
      EXPECT_EQ(node_.Exclusive(id), cpus) << name;
    }
    EXPECT_TRUE(std::includes(asked.begin(), asked.end(), under_way.begin(), under_way.end()));
    for (const ContainerId& id : under_way)
      asked.erase(id);
    if (!in_force.contains("shared")) return;
    const ContainerId& shared = ids_.at("shared");
    if (const auto late = ids_.find("late"); late != ids_.end()) {
      own |= CpuSet::Parse(node_.Exclusive(late->second)).value_or(CpuSet());
    }
    const CpuSet due = shared_cpus_ - own;
    EXPECT_EQ(node_.runtime.CpusOf(shared), due.ToString());
    const bool was_right = in_force["shared"] == due.ToString();
    EXPECT_TRUE(asked.empty() || !was_right) << asked.begin()->value();
  }

 private:
  void Run(const std::string& name, QosClass qos, int64_t milli_cpu) {
    ids_[name] = node_.Run(name, qos, milli_cpu);
  }
  void BeginCreation(const std::string& name, QosClass qos, int64_t milli_cpu) {
    creation_ = TestNode::Request(node_.AddPod(name, qos), name, milli_cpu);
    const auto admission = node_.manager().AdmitCreate(CreateRequest(creation_));
    ASSERT_TRUE(admission.ok()) << admission.status();
    admission_ = *admission;
  }
  void BeginResize(const std::string& name, int64_t milli_cpu) {
    const auto admission =
        node_.manager().AdmitUpdate(ids_.at(name), TestNode::Resources(milli_cpu));
    ASSERT_TRUE(admission.ok()) << admission.status();
    admission_ = *admission;
    resizing_ = ids_.at(name);
    resize_ = TestNode::Resources(milli_cpu);
  }
  void EndResize(const std::string& name, bool succeeded) {
    resizing_.reset();
    if (!succeeded) return node_.manager().UpdateFailed(admission_);
    RuntimeContainer& held = *node_.runtime.Find(ids_.at(name));
    held.resources.cpu_shares = resize_.cpu_shares;
    held.resources.cpu_quota = resize_.cpu_quota;
    node_.runtime.Apply(held.id, admission_.adjustment);
    node_.manager().UpdateSucceeded(admission_);
  }

  const CpuSet shared_cpus_;
  CrashingFileSystem disk_{1};
  StoppingFileSystem files_{disk_};
  TestNode node_;
  std::map<std::string, ContainerId> ids_;
  CreateRequest creation_;
  Admission admission_;
  std::optional<ContainerId> resizing_;
  LinuxResources resize_;
};

class CrashPointsTest : public testing::TestWithParam<PolicyCase> {
 protected:
  static void SetUpTestSuite() { SetLogLevel(LogLevel::kError); }
};

// When the daemon is killed, the disk may be any number of changes behind.
TEST_P(CrashPointsTest, NothingMovesWhereverTheWritingStops) {
  constexpr int kMaxChanges = 12;
  constexpr int kStride = kSanitized ? 3 : 1;
  for (int last = 0; last < Scene::kSteps; last += kStride) {
    for (int stops = 0; stops <= last; ++stops) {
      for (int changes = 0; changes <= kMaxChanges; changes += kStride) {
        SCOPED_TRACE(testing::Message()
                     << "killed after step " << last << ", writing stops at step " << stops
                     << " after " << changes << " changes");
        Scene scene(GetParam());
        for (int step = 0; step <= last; ++step) {
          if (step == stops) scene.files().StopAfter(changes);
          scene.Do(step);
          scene.Flush();
        }
        scene.ExpectNothingLost();
        ASSERT_FALSE(testing::Test::HasFailure());
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Policies, CrashPointsTest, testing::Values(kCases[2]),
                         [](const auto& param_info) { return param_info.param.name; });
INSTANTIATE_TEST_SUITE_P(Long, CrashPointsTest, testing::Values(kCases[0], kCases[1]),
                         [](const auto& param_info) { return param_info.param.name; });

}  // namespace
}  // namespace resmgr::test
