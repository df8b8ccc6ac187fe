// SPDX-License-Identifier: Apache-2.0
// Random nodes with stages and plugins that change every field, and restarts in between: no
// container moves, no CPU is taken or granted, and the containers' requests stay the client's.
// RESMGR_SCENARIOS is the number of scenarios, RESMGR_SEED the first seed.
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "pkg/base/parse.h"
#include "pkg/config/yaml_reader.h"
#include "pkg/kube/cpu_arithmetic.h"
#include "pkg/log/log.h"
#include "policies/balloons/balloons_policy.h"
#include "policies/static-plus/static_plus_policy.h"
#include "policies/static/static_policy.h"
#include "policies/topology-aware/topology_aware_policy.h"
#include "test/integration/brain/node_machines.h"
#include "test/integration/brain/staged_node.h"
#include "test/support/sanitizer.h"
#include "test/support/seed.h"

namespace resmgr::test {
namespace {

constexpr uint64_t kScenarios = kSanitized ? 40 : 300;
constexpr int kMostCpus = 160;
constexpr int64_t kMiB = int64_t{1} << 20;

uint64_t Scenarios() {
  const char* const given = std::getenv("RESMGR_SCENARIOS");
  return given == nullptr ? kScenarios : ParseUint(given).value_or(kScenarios);
}

const std::vector<Machine>& SmallMachines() {
  static const auto* const kMachines = [] {
    auto* const machines = new std::vector<Machine>;
    for (const NamedMachine& each : AllMachines()) {
      if (each.machine.allowed().size() <= kMostCpus) machines->push_back(each.machine);
    }
    return machines;
  }();
  return *kMachines;
}

struct PolicyChoice {
  PolicyFactory factory;
  std::vector<std::string_view> sections;
};

const std::vector<PolicyChoice>& Policies() {
  static const auto* const kPolicies = new std::vector<PolicyChoice>{
      {StaticPolicyFactory(),
       {"", "{Options: {full-pcpus-only: true, cpu-quota: keep}}",
        "{Options: {strict-cpu-reservation: true}}",
        "{Options: {distribute-cpus-across-numa: true}}"}},
      {StaticPlusPolicyFactory(),
       {"", "{ExclusiveCPUs: guaranteed}", "{ExclusiveCPUs: annotated}",
        "{Options: {full-pcpus-only: true}}"}},
      {TopologyAwarePolicyFactory(),
       {"", "{PreferSharedCPUs: true}", "{ColocatePods: true}",
        "{CPUQuota: keep, UnlimitedBurstable: numa}", "{PinMemory: false}"}},
      {BalloonsPolicyFactory(),
       {"",
        "{balloonTypes: [{name: own, preferNewBalloons: true, preferSpreadingPods: true, "
        "matchExpressions: [{key: qosclass, operator: In, values: [Guaranteed]}]}]}",
        "{balloonTypes: [{name: a, namespaces: ['*'], shareIdleCPUsInSame: numa}]}",
        "{pinMemory: false, preferSpreadOnPhysicalCores: true}"}}};
  return *kPolicies;
}

// One scenario. The same seed gives the same one.
class Scenario : Draws {
 public:
  explicit Scenario(uint64_t seed)
      : Draws(seed),
        machine_(OneOf(SmallMachines())),
        policy_(OneOf(Policies())),
        section_(OneOf(policy_.sections)),
        node_(machine_, [this](const Machine& machine) { return MakePolicy(machine); }) {
    if (Chance(80)) node_.first = [this](const auto& request, auto& to) { Change(request, to); };
    if (Chance(80)) node_.second = [this](const auto& request, auto& to) { Change(request, to); };
    if (Chance(40)) node_.own_plugins = [this](auto& container) { ChangeAtTheRuntime(container); };
  }

  void Run() {
    // The first report with a plugin's changes shows that the runtime has plugins.
    while (node_.own_plugins && !plugins_known_ && failures_.empty()) {
      RunOne();
      node_.cut = StagedNode::Cut::kNever;
      plugins_known_ = !running_.empty();
      Note("report");
      node_.Report();
    }
    for (int64_t events = Number(8, 25); events > 0 && failures_.empty(); --events) {
      Act();
      if (Chance(20)) Restart();
    }
    if (failures_.empty()) Restart();
  }
  // The checks that failed; empty: all held.
  const std::vector<std::string>& failures() const { return failures_; }
  std::string Name() const { return fmt::format("{} {}", policy_.factory.name, section_); }
  const std::vector<std::string>& journal() const { return journal_; }
  size_t restarts() const { return restarts_; }

 private:
  struct Expected {
    PodSandboxId pod;
    LinuxResources asked;
    std::vector<LinuxResources> under_way;  // other possible requests
    StringMap labels;
  };
  struct Place {
    CpuSet cpus;
    NodeSet mems;
    CpuSet exclusive;
    Requirements needs;
  };

  std::unique_ptr<Policy> MakePolicy(const Machine& machine) {
    const StatusOr<ConfigNode> section = ParseYaml(section_, "test.yaml");
    CpuSet reserved;
    for (const int cpu : machine.allowed() - machine.isolated()) {
      if (reserved.empty()) reserved.Add(cpu);
    }
    StatusOr<std::unique_ptr<Policy>> policy =
        policy_.factory.create({.machine = machine,
                                .available = machine.allowed(),
                                .reserved = reserved,
                                .section = section_.empty() ? nullptr : &*section});
    EXPECT_TRUE(policy.ok()) << policy.status();
    return *std::move(policy);
  }

  int64_t SomeShares() { return Chance(50) ? Number(2, 5000) : 1024 * Number(1, 8); }
  int64_t SomeQuota() {
    if (Chance(20)) return -1;
    return Chance(50) ? Number(1000, 900'000) : 100'000 * Number(1, 8);
  }

  // Every field of which a brain could take notice.
  void Change(const Request& request, Adjustment& adjustment) {
    if (request.operation() != Operation::kRunPodSandbox) ChangeNumbers(adjustment);
    if (request.operation() == Operation::kUpdateContainerResources || Chance(30)) return;
    WideAdjustment& wide = adjustment.Wide();
    ChangeTexts(wide);
    if (request.operation() == Operation::kCreateContainer) {
      if (Chance(20)) wide.environment.Set("A", "b");
      if (Chance(20)) wide.unified.Set("memory.high", "1000000");
      return;
    }
    if (Chance(50)) {
      constexpr std::array kParents = {"/kubepods/burstable/podx", "/kubepods/besteffort/podx",
                                       "/kubepods/podx", "/elsewhere", ""};
      wide.cgroup_parent = OneOf(kParents);
    }
  }
  void ChangeNumbers(Adjustment& adjustment) {
    ResourceValues& values = adjustment.values;
    if (Chance(40)) values.cpu_shares = SomeShares();
    if (Chance(40)) values.cpu_quota = SomeQuota();
    if (Chance(20)) values.cpu_period = Chance(50) ? 100'000 : Number(1000, 200'000);
    if (Chance(10)) values.cpus = CpuSet{machine_.allowed().First()};
    if (Chance(20)) adjustment.Wide().memory_limit = kMiB * Number(1, 4000);
    if (Chance(20)) adjustment.Wide().oom_score_adj = Number(-997, 1000);
  }
  void ChangeTexts(WideAdjustment& wide) {
    constexpr std::array kKeys = {"prefer-isolated-cpus.resource-policy.nri.io",
                                  "prefer-shared-cpus.cri-resource-manager.intel.com/pod",
                                  "prefer-reserved-cpus.resource-policy.nri.io",
                                  "cpu.preserve.resource-policy.nri.io", "intel.com/resources"};
    for (const char* const key : kKeys) {
      if (!Chance(20)) continue;
      if (Chance(30)) {
        wide.annotations.Remove(key);
      } else {
        wide.annotations.Set(key, key == kKeys.back() ? R"({"containers":{"c":{}}})" : "true");
      }
    }
    if (Chance(30)) wide.labels.Set("team", "of a stage");
    if (Chance(20)) wide.labels.Remove("tier");
  }
  void ChangeAtTheRuntime(RuntimeContainer& container) {
    if (!plugins_known_ || Chance(50)) container.resources.cpu_shares = own_shares_;
    if (Chance(30)) container.resources.cpu_quota = 100'000 * Number(0, 8) + 50'000;
    if (Chance(10)) container.resources.memory_limit = kMiB * Number(1, 4000);
  }

  void Act() {
    const int64_t what = Number(1, 100);
    if (what <= 45 || running_.empty()) return RunOne();
    if (what <= 65) return Resize();
    if (what <= 75) return StopOne();
    if (what <= 85) {
      const ContainerId id = OneOf(running_).first;
      Note("a stage sets " + std::string(id.value()));
      return node_.SetByStage(id, {.cpu_shares = SomeShares(), .cpu_quota = SomeQuota()});
    }
    Note("report");
    node_.Report();
  }

  Pod SomePod(QosClass& qos) {
    Pod pod;
    const std::string uid = "pod" + std::to_string(++names_);
    pod.name = uid;
    pod.namespace_name = Chance(5) ? "kube-system" : "default";
    qos = Chance(60)   ? QosClass::kGuaranteed
          : Chance(60) ? QosClass::kBurstable
                       : QosClass::kBestEffort;
    pod.cgroup_parent = qos == QosClass::kGuaranteed  ? "/kubepods/" + uid
                        : qos == QosClass::kBurstable ? "/kubepods/burstable/" + uid
                                                      : "/kubepods/besteffort/" + uid;
    if (Chance(15)) pod.cgroup_parent.clear();
    pod.labels = {{"team", "blue"}, {"tier", "front"}};
    if (Chance(10)) pod.annotations.Set("prefer-isolated-cpus.resource-policy.nri.io", "false");
    if (Chance(5)) pod.annotations.Set("prefer-shared-cpus.resource-policy.nri.io", "true");
    return pod;
  }
  LinuxResources SomeResources(QosClass qos) {
    if (qos == QosClass::kBestEffort) {
      LinuxResources nothing;
      nothing.cpu_shares = kMinShares;
      nothing.oom_score_adj = 1000;
      return nothing;
    }
    const int64_t cpus = std::max(1, machine_.online().size() / 4);
    const int64_t milli = Chance(75) ? 1000 * Number(1, cpus) : Number(100, 1000 * cpus);
    LinuxResources resources = TestNode::Resources(milli);
    resources.memory_limit = kMiB * Number(50, 1000);
    resources.oom_score_adj = -997;
    if (qos == QosClass::kGuaranteed) return resources;
    resources.oom_score_adj = 900;
    resources.cpu_quota = Chance(50) ? -1 : 2 * *resources.cpu_quota;
    if (Chance(50)) resources.memory_limit = 0;
    return resources;
  }

  void RunOne() {
    QosClass qos{};
    const Pod pod = SomePod(qos);
    const LinuxResources resources = SomeResources(qos);
    const bool killed = MaybeCut();
    const std::map<ContainerId, Place> before = Places();
    const PodSandboxId sandbox = node_.RunPod(pod);
    pods_[sandbox] = pod;
    const StringMap labels = {{"team", "red"}, {"tier", "back"}};
    const StatusOr<ContainerId> id = node_.Create(sandbox, "c", resources, labels);
    Note(fmt::format("create {} {} {}: {}", pod.name, ToString(qos),
                     resources.cpu_shares.value_or(0),
                     id.ok() ? std::string(id->value()) : Describe(id.status())));
    if (killed) return CheckOthers(before, {});
    if (!id.ok()) return;
    running_[*id] = {.pod = sandbox, .asked = resources, .under_way = {}, .labels = labels};
    const Status started = node_.Start(*id);
    if (!started.ok()) Note("not started: " + Describe(started));
  }
  void Resize() {
    const ContainerId id = OneOf(running_).first;
    Expected& expected = running_.at(id);
    const QosClass qos = node_.PodOf(id).qos;
    const LinuxResources changes = SomeResources(qos);
    const bool killed = MaybeCut();
    const std::map<ContainerId, Place> before = Places();
    const Status status = node_.Update(id, changes);
    Note(fmt::format("resize {} to {}: {}", id.value(), changes.cpu_shares.value_or(0),
                     Describe(status)));
    if (killed && node_.cut == StagedNode::Cut::kNever) {
      expected.under_way.push_back(Merged(expected.asked, changes));
      CheckOthers(before, id);
      // A further restart does not change which of the two requests it is.
      if (Asks(expected.under_way.back(), node_.Known(id).requested)) {
        expected.asked = expected.under_way.back();
      }
      expected.under_way.clear();
    } else if (status.ok()) {
      expected.asked = Merged(expected.asked, changes);
    }
    node_.cut = StagedNode::Cut::kNever;
  }
  bool MaybeCut() {
    if (!Chance(15)) return false;
    node_.cut = Chance(40) ? StagedNode::Cut::kBeforeTheRuntime : StagedNode::Cut::kAfterTheRuntime;
    Note("killed in the next call");
    return true;
  }
  void StopOne() {
    const ContainerId id = OneOf(running_).first;
    Note("stop " + std::string(id.value()));
    node_.Stop(id);
    running_.erase(id);
  }

  std::map<ContainerId, Place> Places() {
    std::map<ContainerId, Place> places;
    for (const auto& [id, expected] : running_) {
      const Container& known = node_.Known(id);
      // No container has a placement that is not in force yet.
      if (!node_.InForce(id)) continue;
      places[id] = {known.placement.cpus.value_or(CpuSet()),
                    known.placement.mems.value_or(NodeSet()), known.placement.exclusive,
                    known.requirements};
    }
    return places;
  }

  // Between calls: all is as before.
  void Restart() {
    node_.cut = StagedNode::Cut::kNever;
    node_.Settle();
    if (Chance(30)) node_.Report();
    const std::map<ContainerId, Place> before = Places();
    const bool silent = Chance(15);
    const std::vector<Pod> told = node_.runtime().held.pods;
    if (silent) {
      for (Pod& pod : node_.runtime().held.pods) {
        pod.cgroup_parent.clear();
        pod.qos = QosClass::kBestEffort;
        pod.qos_derived = true;
      }
    }
    Note(silent ? "restart, and the runtime does not tell cgroup parents" : "restart");
    ++restarts_;
    node_.Kill();
    node_.runtime().held.pods = told;
    const std::map<ContainerId, Place> after = Places();
    for (const auto& [id, place] : before) {
      if (!after.contains(id)) {
        failures_.push_back(std::string(id.value()) + " is not in force any more");
        continue;
      }
      const Place& now = after.at(id);
      ExpectSame(id, "CPUs", place.cpus.ToString(), now.cpus.ToString());
      ExpectSame(id, "memory nodes", place.mems.ToString(), now.mems.ToString());
      ExpectSame(id, "needs", Text(place.needs), Text(now.needs));
    }
    CheckOthers(before, {});
  }

  // After a restart, no container has lost or got exclusive CPUs, except the one that a call was
  // about.
  void CheckOthers(const std::map<ContainerId, Place>& before, const ContainerId& about) {
    node_.cut = StagedNode::Cut::kNever;
    for (const auto& [id, place] : before) {
      const Container& known = node_.Known(id);
      const Expected& expected = running_.at(id);
      const bool may_ask = std::ranges::any_of(
          expected.under_way, [&](const auto& asked) { return Asks(asked, known.requested); });
      if (!may_ask) ExpectSame(id, "request", Text(expected.asked), Text(known.requested));
      const Pod& pod = node_.PodOf(id);
      const Pod& asked = pods_.at(expected.pod);
      const bool same_texts = known.labels == expected.labels && pod.labels == asked.labels &&
                              pod.annotations == asked.annotations;
      ExpectSame(id, "labels and annotations", "as asked", same_texts ? "as asked" : "changed");
      if (id == about) continue;
      ExpectSame(id, "exclusive CPUs", place.exclusive.ToString(),
                 known.placement.exclusive.ToString());
    }
  }
  static std::string Text(const LinuxResources& asked) {
    return fmt::format("shares {} quota {} period {} memory {}", asked.cpu_shares.value_or(0),
                       asked.cpu_quota.value_or(0), asked.cpu_period.value_or(0),
                       asked.memory_limit.value_or(0));
  }
  static std::string Text(const Requirements& needs) {
    return fmt::format("{}m to {}m, {} to {} bytes", needs.cpu_request.value, needs.cpu_limit.value,
                       needs.memory_request.value, needs.memory_limit.value);
  }
  static bool Asks(const LinuxResources& asked, const LinuxResources& known) {
    return Text(asked) == Text(known);
  }
  void ExpectSame(const ContainerId& id, std::string_view what, const std::string& before,
                  const std::string& now) {
    if (before == now) return;
    failures_.push_back(
        fmt::format("{}: {} before \"{}\", now \"{}\"", id.value(), what, before, now));
  }

  void Note(std::string event) { journal_.push_back(std::move(event)); }

  const Machine& machine_;
  const PolicyChoice& policy_;
  const std::string_view section_;
  StagedNode node_;
  // Never the shares of a number of CPUs on which a container may be alone: before the first report
  // these look like an update (pkg/adr/0003-state.md).
  const int64_t own_shares_ = 1024 * Number(0, 8) + 512;
  std::map<ContainerId, Expected> running_;
  std::map<PodSandboxId, Pod> pods_;
  std::vector<std::string> journal_;
  std::vector<std::string> failures_;
  int names_ = 0;
  bool plugins_known_ = false;
  size_t restarts_ = 0;
};

class RandomStagesTest : public testing::Test {
 protected:
  static void SetUpTestSuite() { SetLogLevel(LogLevel::kError); }
};

TEST_F(RandomStagesTest, ARestartMovesNobodyWhateverStagesChange) {
  const uint64_t first = SeedOr(34'000'000);
  size_t restarts = 0;
  for (uint64_t i = 0; i < Scenarios(); ++i) {
    SCOPED_TRACE(Repeat(first + i) << " RESMGR_SCENARIOS=1");
    Scenario scenario(first + i);
    scenario.Run();
    restarts += scenario.restarts();
    if (scenario.failures().empty()) continue;
    std::string text = scenario.Name();
    for (const std::string& event : scenario.journal())
      text += "\n" + event;
    for (const std::string& failure : scenario.failures())
      text += "\n  " + failure;
    ADD_FAILURE() << text;
  }
  EXPECT_GE(restarts, Scenarios());
}

}  // namespace
}  // namespace resmgr::test
