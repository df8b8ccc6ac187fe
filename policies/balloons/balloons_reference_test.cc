// SPDX-License-Identifier: Apache-2.0
// Random lives of a node under the policy and under the reference beside it, which was written from
// the description of the rules alone: type and balloon of each container, sizes, CPUs, idle CPUs
// that are shared, and refusals are the same after every step. Pods that a scheduler would send are
// granted under random configurations, too. RESMGR_SEED: the first seed.
#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "policies/balloons/testing/balloons_node.h"
#include "policies/balloons/testing/random_balloons.h"
#include "policies/balloons/testing/reference_balloons.h"
#include "test/support/sanitizer.h"
#include "test/support/seed.h"

namespace resmgr::test {
namespace {

constexpr uint64_t kLives = kSanitized ? 200 : 2000;
constexpr uint64_t kSentLives = kLives / 4;
// Limits the output, since one fault of a rule may change thousands of lives.
constexpr int kMaxDifferentLives = 5;
// Ours moves and overcommits only where it is asked to; the rules that are compared do neither.
constexpr const char* kRefuse = "whenShort: refuse\nmoveBudget: 0\n";

QosClass QosOf(const ReferenceContainer& container) {
  if (container.qos_class == "Guaranteed") return QosClass::kGuaranteed;
  return container.qos_class == "Burstable" ? QosClass::kBurstable : QosClass::kBestEffort;
}

// Adds a container that is not placed yet.
ContainerKey AddTo(BalloonsNode& node, const ReferenceContainer& container) {
  Container& added = node.snapshot().Add(container.name, QosOf(container), container.milli_cpu);
  Pod& pod = node.snapshot().PodOf(added.key);
  pod.id = PodSandboxId(container.pod);
  pod.uid = PodUid(container.pod);
  pod.name = container.pod;
  pod.namespace_name = container.namespace_name;
  for (const auto& [key, value] : container.labels)
    pod.labels.Set(key, value);
  added.pod_id = pod.id;
  if (!container.annotated.empty()) {
    node.Annotate(added.key, "balloon.balloons", container.annotated);
  }
  return added.key;
}

class Life {
 public:
  explicit Life(uint64_t seed)
      : random_(seed),
        machine_(random_.NextMachine()),
        config_(random_.NextConfig(machine_)),
        section_(SectionOf(config_, kRefuse)),
        reference_(machine_, config_) {}

  // The first difference; empty: there is none.
  std::string Difference() {
    const bool started = reference_.Start();
    const Status error = CreateError(BalloonsPolicyFactory(), machine_, "", section_);
    if (started != error.ok()) {
      return Told("start", started ? "accepted" : "refused", std::string(Message(error)));
    }
    if (!started) return "";
    node_ = std::make_unique<BalloonsNode>(section_, machine_);
    std::string difference = Compared("start");
    for (int steps = random_.Number(10, 30); steps > 0 && difference.empty(); --steps) {
      const int what = containers_.empty() ? 10 : random_.Number(1, 10);
      difference = what <= 3 ? Remove() : what == 4 ? Resize() : Create();
    }
    return difference;
  }

  BalloonsNode* node() { return node_.get(); }
  std::string Told() const { return DescriptionOf(machine_) + section_; }

 private:
  struct Live {
    ReferenceContainer container;
    ContainerKey key;
  };

  std::string Create() {
    ReferenceContainer container = !containers_.empty() && random_.OneIn(3)
                                       ? random_.NextInPod(random_.OneOf(containers_).container)
                                       : random_.NextContainer(config_);
    const ContainerKey added = AddTo(*node_, container);
    container.key = static_cast<uint64_t>(added);
    const std::string text = fmt::format("create {} in {} of {}: {}", container.name, container.pod,
                                         container.namespace_name, container.milli_cpu);
    const ReferenceBalloon* const balloon = reference_.Create(container);
    const StatusOr<ContainerKey> key = node_->Place(added);
    const std::string expected = balloon == nullptr ? "refused" : balloon->name();
    const std::string got = key.ok() ? node_->PoolOf(*key) : "refused";
    log_ += fmt::format("{} -> {} by {}; {}\n", text, expected, reference_.method(),
                        key.ok() ? "" : Message(key.status()));
    if (expected != got) return Told("balloon", expected, got);
    if (key.ok()) containers_.push_back({container, *key});
    return Compared("create");
  }

  std::string Resize() {
    Live& live = containers_[static_cast<size_t>(
        random_.Number(0, static_cast<int>(containers_.size()) - 1))];
    const int64_t milli_cpu = random_.NextInPod(live.container).milli_cpu;
    const bool expected = reference_.Update(live.container.key, milli_cpu);
    const Status status = node_->Resize(live.key, milli_cpu);
    log_ += fmt::format("resize {} of {} from {} to {}: {}\n", live.container.name,
                        live.container.pod, live.container.milli_cpu, milli_cpu, expected);
    if (expected != status.ok()) {
      return Told("resize", expected ? "granted" : "refused", std::string(Message(status)));
    }
    if (expected) live.container.milli_cpu = milli_cpu;
    const std::string balloon = reference_.Find(live.container.key)->name();
    const std::string got = node_->PoolOf(live.key);
    return balloon == got ? Compared("resize") : Told("balloon at resize", balloon, got);
  }

  std::string Remove() {
    const size_t index =
        static_cast<size_t>(random_.Number(0, static_cast<int>(containers_.size()) - 1));
    const Live gone = containers_[index];
    containers_.erase(containers_.begin() + static_cast<std::ptrdiff_t>(index));
    log_ += fmt::format("remove {} of {} from {}\n", gone.container.name, gone.container.pod,
                        node_->PoolOf(gone.key));
    reference_.Remove(gone.container.key);
    node_->Remove(gone.key);
    return Compared("remove");
  }

  std::string Compared(const char* step) {
    std::map<std::string, CpuSet> expected;
    for (const ReferenceBalloon& balloon : reference_.balloons())
      expected[balloon.name()] = balloon.cpus();
    std::map<std::string, CpuSet> got;
    for (const Zone& zone : node_->policy().Zones(node_->snapshot())) {
      if (zone.name.find('[') != std::string::npos) got[zone.name] = zone.cpus;
    }
    if (expected != got) return Told(fmt::format("CPUs at {}", step), Text(expected), Text(got));
    log_ += "  " + Text(got) + "\n";
    for (const Live& live : containers_) {
      const ReferenceBalloon& balloon = *reference_.Find(node_->PoolOf(live.key));
      const CpuSet visible = reference_.Visible(balloon);
      if (visible != node_->SetOf(live.key)) {
        return Told(fmt::format("shown CPUs of {}", balloon.name()), visible.ToString(),
                    node_->CpusOf(live.key));
      }
    }
    return "";
  }

  static std::string Text(const std::map<std::string, CpuSet>& balloons) {
    std::string text;
    for (const auto& [name, cpus] : balloons)
      text += fmt::format("{} {{{}}} ", name, cpus.ToString());
    return text;
  }

  std::string Told(const std::string& what, const std::string& expected, const std::string& got) {
    return fmt::format("{}\n  reference: {}\n  policy:    {}\n{}{}{}", what, expected, got,
                       DescriptionOf(machine_), section_, log_);
  }

  RandomBalloons random_;
  const Machine machine_;
  const ReferenceConfig config_;
  const std::string section_;
  ReferenceBalloons reference_;
  std::unique_ptr<BalloonsNode> node_;
  std::vector<Live> containers_;
  std::string log_;
};

// The changes by a restart without any state: the first container that moves, with its balloon and
// CPUs; empty: none. Counts them.
std::string MovedByALoss(BalloonsNode& node, int& moved, int& all) {
  std::map<ContainerKey, std::string> before;
  std::string zones;
  for (const Zone& zone : node.policy().Zones(node.snapshot()))
    zones += fmt::format("{} {{{}}} {}\n", zone.name, zone.cpus.ToString(), zone.containers);
  node.snapshot().ForEachContainer([&](const Pod&, const Container& container) {
    before[container.key] = node.CpusOf(container.key);
    zones += fmt::format("{} {}m {} {}\n", static_cast<uint64_t>(container.key),
                         container.requirements.cpu_request.value, before[container.key],
                         container.placement.reason);
  });
  node.ForgetDecisions();
  node.Reconcile();
  std::string text;
  for (const auto& [key, cpus] : before) {
    ++all;
    if (node.CpusOf(key) == cpus) continue;
    ++moved;
    text += fmt::format("{} in {}: {} -> {}\n", static_cast<uint64_t>(key), node.PoolOf(key), cpus,
                        node.CpusOf(key));
  }
  return text.empty() ? text : text + zones;
}

// Likewise by a restart with the state.
std::string MovedByARestart(BalloonsNode& node, int& moved, int& all) {
  std::map<ContainerKey, std::string> before;
  node.snapshot().ForEachContainer([&](const Pod&, const Container& container) {
    before[container.key] = node.CpusOf(container.key);
  });
  node.RestartPolicy();
  node.Reconcile();
  std::string text;
  for (const auto& [key, cpus] : before) {
    ++all;
    if (node.CpusOf(key) == cpus) continue;
    ++moved;
    text += fmt::format("{} in {}: {} -> {}\n", static_cast<uint64_t>(key), node.PoolOf(key), cpus,
                        node.CpusOf(key));
  }
  return text;
}

// Containers as a scheduler sends them: together they ask for no more than the allocatable CPUs.
// The types do not limit sizes.
class SentLife {
 public:
  explicit SentLife(uint64_t seed)
      : random_(seed), machine_(random_.NextMachine()), config_(random_.NextConfig(machine_)) {
    for (ReferenceType& type : config_.types)
      type.max_cpus = 0;
    const int64_t reserved = config_.reserved_cpus.empty()
                                 ? config_.reserved_milli
                                 : int64_t{1000} * config_.reserved_cpus.size();
    room_ = int64_t{1000} * config_.available.size() - reserved;
  }

  // The first refusal; empty: there is none.
  std::string Refusal() {
    const std::string section = SectionOf(config_, "");
    if (room_ < 0) return "";
    if (!CreateError(BalloonsPolicyFactory(), machine_, "", section).ok()) return "";
    node_ = std::make_unique<BalloonsNode>(section, machine_);
    BalloonsNode& node = *node_;
    for (int steps = random_.Number(10, 30); steps > 0; --steps) {
      if (!containers_.empty() && random_.Number(1, 10) <= 3) {
        Remove(node);
        continue;
      }
      const Status status = Create(node);
      if (!status.ok()) {
        return std::string(Message(status)) + "\n" + DescriptionOf(machine_) + section + log_;
      }
    }
    return "";
  }

  // After a life without a refusal; null where the configuration is none.
  BalloonsNode* node() { return node_.get(); }
  std::string Told() const { return DescriptionOf(machine_) + SectionOf(config_, ""); }

 private:
  Status Create(BalloonsNode& node) {
    ReferenceContainer container = random_.NextContainer(config_);
    container.milli_cpu = std::min(container.milli_cpu, room_);
    log_ += fmt::format("create {} of {}: {}\n", container.name, container.namespace_name,
                        container.milli_cpu);
    RESMGR_ASSIGN_OR_RETURN(const ContainerKey key, node.Place(AddTo(node, container)));
    room_ -= container.milli_cpu;
    containers_.emplace_back(key, container.milli_cpu);
    log_ += fmt::format("  {} {}\n", node.PoolOf(key), node.CpusOf(key));
    return OkStatus();
  }

  void Remove(BalloonsNode& node) {
    const size_t index =
        static_cast<size_t>(random_.Number(0, static_cast<int>(containers_.size()) - 1));
    const auto [key, milli_cpu] = containers_[index];
    containers_.erase(containers_.begin() + static_cast<std::ptrdiff_t>(index));
    room_ += milli_cpu;
    log_ += fmt::format("remove one of {}\n", node.PoolOf(key));
    node.Remove(key);
  }

  RandomBalloons random_;
  const Machine machine_;
  ReferenceConfig config_;
  int64_t room_ = 0;  // milli-CPUs that a scheduler sees free
  std::unique_ptr<BalloonsNode> node_;
  std::vector<std::pair<ContainerKey, int64_t>> containers_;
  std::string log_;
};

TEST(BalloonsReference, WhatASchedulerSendsIsGrantedUnderAnyConfiguration) {
  const uint64_t first = SeedOr(1);
  int refused = 0;
  for (uint64_t seed = first; seed < first + kSentLives && refused < kMaxDifferentLives; ++seed) {
    const std::string refusal = SentLife(seed).Refusal();
    if (refusal.empty()) continue;
    ++refused;
    ADD_FAILURE() << "RESMGR_SEED=" << seed << ": " << refusal;
  }
}

TEST(BalloonsReference, RandomLivesAreTheSame) {
  const uint64_t first = SeedOr(1);
  int different = 0;
  for (uint64_t seed = first; seed < first + kLives && different < kMaxDifferentLives; ++seed) {
    const std::string difference = Life(seed).Difference();
    if (difference.empty()) continue;
    ++different;
    ADD_FAILURE() << "RESMGR_SEED=" << seed << ": " << difference;
  }
}

// Lets `move` start nodes anew, which counts the containers that move: at most one of `of` may.
template <typename Move>
void ExpectFewMoved(const Move& move, int of) {
  const uint64_t first = SeedOr(1);
  std::string told;
  int moved = 0;
  int all = 0;
  const auto start_anew = [&](auto& life, uint64_t seed) {
    if (life.node() == nullptr) return;
    const std::string text = move(*life.node(), moved, all);
    if (!text.empty()) told = fmt::format("RESMGR_SEED={}: {}{}", seed, text, life.Told());
  };
  for (uint64_t seed = first; seed < first + kSentLives; ++seed) {
    SentLife sent(seed);
    if (sent.Refusal().empty()) start_anew(sent, seed);
    Life limited(seed);
    if (limited.Difference().empty()) start_anew(limited, seed);
  }
  EXPECT_GT(all, 0);
  EXPECT_LE(of * moved, all) << moved << " of " << all << " moved, at last in " << told;
}

// The state has the balloons of containers; those without any are made anew.
TEST(BalloonsReference, ARestartMovesFewContainersUnderAnyConfiguration) {
  ExpectFewMoved(MovedByARestart, 500);
}

// The former balloons explain all CPUs, but the search for such ones does not try all choices.
TEST(BalloonsReference, ALossOfStateMovesFewContainersUnderAnyConfiguration) {
  ExpectFewMoved(MovedByALoss, 300);
}

}  // namespace
}  // namespace resmgr::test
