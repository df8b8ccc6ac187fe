// SPDX-License-Identifier: Apache-2.0
#include "test/integration/brain/world.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include <gtest/gtest.h>

#include "pkg/config/yaml_reader.h"
#include "pkg/policy/testing/test_snapshot.h"

namespace resmgr::test {
namespace {

ResourceManager::Options OptionsWith(Clock& clock, Clock& timers) {
  ResourceManager::Options options = TestNode::FastOptions();
  options.clock = &clock;
  options.timers = &timers;
  return options;
}

}  // namespace

World::World(const Setup& setup, uint64_t seed)
    : Draws(seed),
      setup_(setup),
      reconfigures_(setup.keeps_state || Chance(33)),
      machine_(setup.machine),
      found_(&machine_),
      configured_(setup.configuration),
      keeps_state_(setup.keeps_state),
      disk_(seed),
      files_(disk_),
      node_(
          setup.machine, [this](const Machine&) { return *MakePolicy(configured_); },
          OptionsWith(clock_, timers_)) {
  if (keeps_state_) node_.KeepState(files_);
}

int64_t World::SomeRequest() {
  const int cpus = machine_.online().size();
  // CPU shares do not distinguish larger requests.
  constexpr int kMostByShares = 256;
  if (cpus > kMostByShares && Chance(15)) return 1000 * Number(kMostByShares, cpus / 2 + 150);
  const int64_t whole = 1000 * Number(1, Chance(20) ? cpus : std::max(1, cpus / 4));
  return Chance(80) ? whole : whole + Number(1, 999);
}

RuntimeContainer* World::SomeContainer(ContainerState state) {
  std::vector<RuntimeContainer*> candidates;
  for (RuntimeContainer& container : node_.runtime.held.containers) {
    if (container.state == state) candidates.push_back(&container);
  }
  if (candidates.empty()) return nullptr;
  return OneOf(candidates);
}

std::string World::Journal() {
  std::string text;
  for (const std::string& event : journal_)
    text += event + "\n";
  return text + Describe();
}

std::string World::Describe() {
  std::string text;
  node_.manager().snapshot().ForEachContainer([&](const Pod& pod, const Container& container) {
    const RuntimeContainer* const held = node_.runtime.Find(container.id);
    const auto owned = owned_.find(container.id);
    text +=
        fmt::format("{} {} {} {}m: placed {} exclusive {} ({}); in force {} shares {}; owns {}\n",
                    container.name, container.id.value(), ToString(pod.qos),
                    container.requirements.cpu_request.value,
                    container.placement.cpus.value_or(CpuSet()).ToString(),
                    container.placement.exclusive.ToString(), container.placement.reason,
                    held == nullptr ? "nothing" : node_.runtime.CpusOf(container.id),
                    held == nullptr ? 0 : held->resources.cpu_shares.value_or(0),
                    owned == owned_.end() ? "nothing" : owned->second.cpus.ToString());
  });
  return text;
}

void World::Note(std::string event) {
  constexpr size_t kKept = 120;
  const auto keep = [this](std::string line) {
    journal_.push_back(std::move(line));
    if (journal_.size() > kKept) journal_.pop_front();
  };
  for (; noted_updates_ < history().size(); ++noted_updates_)
    keep("  asked: " + history()[noted_updates_]);
  keep(std::move(event));
}

void World::Step() {
  // A kill within milliseconds of the event: the disk has only a part of it.
  const bool killed = keeps_state_ && !files_.stopping() && Chance(4);
  if (killed) {
    Note("the last step of this daemon");
    files_.StopAfter(static_cast<int>(Number(0, 3)));
  }
  if (setup_.cpus_go_offline) TellOffline();
  if (setup_.cpus_go_offline && Chance(4)) {
    ChangeOnline();
  } else {
    Act();
  }
  if (!keeps_state_) return;
  node_.FlushState();
  if (killed && files_.stopping()) RestartDaemon();
  if (!files_.stopping() && Chance(2)) {
    Note("the disk stops");
    files_.StopAfter(static_cast<int>(Number(0, 3)));
  }
  NotePools();
}

void World::NotePools() {
  if (!files_.stopping()) return;
  node_.manager().snapshot().ForEachContainer([this](const Pod&, const Container& container) {
    const Placement& placement = container.placement;
    if (container.id.empty() || !placement.exclusive.empty() || placement.pool.empty()) return;
    // A balloon has other CPUs at times, which the disk has not heard of.
    const bool balloon = placement.pool.ends_with(']');
    const std::string cpus = balloon ? placement.cpus.value_or(CpuSet()).ToString() : "";
    pools_[container.id].insert(placement.pool + cpus);
  });
}

bool World::HasUnsavedPools() const {
  return std::ranges::any_of(pools_, [](const auto& entry) { return entry.second.size() > 1; });
}

void World::Act() {
  const int64_t what = Number(1, 100);
  if (what <= 6) return AddSandbox();
  if (what <= 20) return BeginCreation();
  if (what <= 24) return BeginAttempt();
  if (what <= 38) {
    if (!creations_.empty()) EndCreation(0, Chance(85));
    return;
  }
  if (what <= 50) return BeginStart();
  if (what <= 60) {
    if (!starts_.empty()) EndStart(static_cast<size_t>(Number(0, std::ssize(starts_) - 1)));
    return;
  }
  if (what <= 61) return WithdrawStart();
  if (what <= 67) return BeginResize();
  if (what <= 73) {
    if (!resizes_.empty()) EndResize(static_cast<size_t>(Number(0, std::ssize(resizes_) - 1)));
    return;
  }
  if (what <= 77) return StopSome();
  if (what <= 80) return RemoveSome();
  if (what <= 82) return CrashSome();
  if (what <= 83) {
    if (!sandboxes_.empty()) {
      RemoveSandbox(static_cast<size_t>(Number(0, std::ssize(sandboxes_) - 1)));
    }
    return;
  }
  if (reconfigures_ && Chance(6)) return ChangeConfiguration();
  if (what <= 85) {
    clock_.Advance(std::chrono::seconds(Number(1, 40)));
    return;
  }
  if (what <= 98) return AnswerSome();
  if (what <= 99) return LoseConnection();
  RestartDaemon();
}

void World::Settle() {
  while (!creations_.empty())
    EndCreation(0, true);
  while (!abandoned_creations_.empty())
    EndAbandonedCreation(0);
  while (!abandoned_starts_.empty())
    EndAbandonedStart(0);
  while (!resizes_.empty()) {
    EndResize(0);
    CheckRunning();
  }
  const bool settled = RunUntil([this] {
    AnswerLists();
    while (!node_.runtime.updates.empty()) {
      node_.runtime.Answer(0);
      CheckRunning();
    }
    // A container being started is not updated until the start is over.
    for (size_t i = 0; i < starts_.size();) {
      if (starts_[i]->decided.has_value()) {
        EndStart(i);
      } else {
        ++i;
      }
    }
    return starts_.empty() && AllInForce();
  });
  EXPECT_TRUE(settled) << starts_.size() << " starts wait\n" << Describe();
  may_start_.clear();
  clock_.Advance(std::chrono::hours(1));
  EXPECT_TRUE(RunUntil([this] {
    AnswerLists();
    node_.runtime.AnswerAll();
    return AllInForce();
  }));
}

bool World::RunUntil(const std::function<bool()>& condition) {
  constexpr int kMostTimers = 10'000;  // far more than all pending work takes
  EventLoop& loop = node_.loop();
  for (int timer = 0; timer < kMostTimers; ++timer) {
    if (condition()) return true;
    loop.Post([&loop] { loop.Stop(); });
    loop.Run();
    timers_.RunNext();
  }
  return false;
}

bool World::AllInForce() {
  bool all = true;
  node_.manager().snapshot().ForEachContainer([&](const Pod&, const Container& container) {
    const Placement& placement = container.placement;
    const RuntimeContainer* const held = node_.runtime.Find(container.id);
    if (placement.cpus && node_.runtime.CpusOf(container.id) != placement.cpus->ToString()) {
      all = false;
    }
    if (placement.cpus && !node_.manager().Settled(container.key)) all = false;
    if (!placement.mems || held == nullptr) return;
    if (held->resources.cpuset_mems.value_or("") != placement.mems->ToString()) all = false;
  });
  return all;
}

void World::End() {
  Settle();
  while (!sandboxes_.empty())
    RemoveSandbox(0);
  node_.runtime.AnswerAll();
}

// How the configuration of a World changes.

StatusOr<std::unique_ptr<Policy>> World::MakePolicy(const Configuration& configuration) const {
  RESMGR_ASSIGN_OR_RETURN(const ConfigNode section, ParseYaml(configuration.section, "test.yaml"));
  const Configuration effective = Effective(configuration);
  if (effective.available.empty()) return InvalidArgument("all of its CPUs are offline");
  return configuration.factory.create({.machine = *found_,
                                       .available = effective.available,
                                       .reserved = effective.reserved,
                                       .section = &section,
                                       .offline = told_ | OfflineCpus(*found_)});
}

// Better places on demand, another policy, or other options. Calls under way go on meanwhile.
void World::ChangeConfiguration() {
  unsaved_moves_ |= files_.stopping();
  if (Chance(30)) {
    const auto moves = node_.manager().policy_changes().Rebalance();
    EXPECT_TRUE(moves.ok()) << moves.status();
    Note(fmt::format("rebalance: {} moves", moves.ok() ? moves->size() : 0));
    return;
  }
  const Configuration next = SomeConfiguration();
  Note(fmt::format("policy {} {} on {} reserved {}", next.factory.name, next.section,
                   next.available.ToString(), next.reserved.ToString()));
  StatusOr<std::unique_ptr<Policy>> policy = MakePolicy(next);
  if (!policy.ok()) {
    // Options or CPUs that are not for this machine.
    EXPECT_EQ(policy.status().code(), StatusCode::kInvalidArgument) << policy.status();
    Note(std::string(Message(policy.status())));
    return;
  }
  const std::map<ContainerKey, CpuSet> rightful = Rightful(next);
  const Policy* const made = policy->get();
  reconfigured_ = true;
  node_.manager().policy_changes().Set(
      *std::move(policy), [this, before = std::exchange(configured_, next)](const Status& status) {
        if (!status.ok()) configured_ = before;
        // Other containers were admitted meanwhile, so the exclusive ones are determined again.
        if (!status.ok()) owned_.clear();
        Note(fmt::format("the change of the policy ended: {}", resmgr::Describe(status)));
      });
  if (&node_.manager().policy() != made) return;
  for (const auto& [key, own] : rightful) {
    const Container& container = *node_.manager().snapshot().FindContainer(key);
    EXPECT_EQ(container.placement.exclusive.ToString(), own.ToString())
        << container.name << " lost CPUs that it could keep: " << container.placement.reason;
  }
}

// A policy, its options, or the CPUs that it may use.
World::Configuration World::SomeConfiguration() {
  if (Chance(20)) return setup_.configuration;
  Configuration next = configured_;
  const bool same_policy = Chance(60);
  const Choice* choice =
      &setup_.choices[static_cast<size_t>(Number(0, std::ssize(setup_.choices) - 1))];
  for (const Choice& other : setup_.choices) {
    if (same_policy && other.factory.name == next.factory.name) choice = &other;
  }
  if (!same_policy || Chance(60)) {
    next.factory = choice->factory;
    next.section =
        choice->sections[static_cast<size_t>(Number(0, std::ssize(choice->sections) - 1))];
  }
  if (Chance(30)) {
    next.available = machine_.allowed();
    const int64_t percent = Number(0, 30);
    for (const int cpu : machine_.allowed()) {
      if (Chance(static_cast<int>(percent))) next.available.Remove(cpu);
    }
  }
  if (Chance(30)) {
    next.reserved = {};
    const CpuSet ordinary = next.available - machine_.isolated();
    for (int64_t count = Number(0, 3); count > 0; --count) {
      const int64_t skipped = Number(0, ordinary.size());
      int64_t at = 0;
      for (const int cpu : ordinary) {
        if (at++ == skipped) next.reserved.Add(cpu);
      }
    }
  }
  next.reserved &= next.available;
  return next;
}

std::map<ContainerKey, CpuSet> World::Rightful(const Configuration& wanted) {
  const Configuration next = Effective(wanted);
  const CpuSet grantable = next.available - next.reserved;
  std::map<ContainerKey, CpuSet> rightful;
  CpuSet all;
  node_.manager().snapshot().ForEachContainer([&](const Pod& pod, const Container& container) {
    const CpuSet& own = container.placement.exclusive;
    if (own.empty() || !own.IsSubsetOf(grantable)) return;
    all |= own;
    if (ExclusiveOnEmptyNode(next, pod, container) == own.size()) rightful[container.key] = own;
  });
  // One container has to make room for shared ones.
  if ((grantable - machine_.isolated()).IsSubsetOf(all)) return {};
  return rightful;
}

int World::ExclusiveOnEmptyNode(const Configuration& configuration, const Pod& pod,
                                const Container& container) const {
  const StatusOr<std::unique_ptr<Policy>> policy = MakePolicy(configuration);
  TestSnapshot node;
  Container& guest = node.Add(container.name, pod.qos, container.requirements.cpu_request.value);
  guest.requirements = container.requirements;
  guest.annotations = container.annotations;
  Pod& its_pod = node.PodOf(guest.key);
  its_pod.namespace_name = pod.namespace_name;
  its_pod.annotations = pod.annotations;
  const StatusOr<Plan> plan = (*policy)->Allocate(node, its_pod, guest, nullptr);
  if (!plan.ok()) return 0;
  node.Apply(*plan);
  return guest.placement.exclusive.size();
}

}  // namespace resmgr::test
