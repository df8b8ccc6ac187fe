// SPDX-License-Identifier: Apache-2.0
// How the configuration of a World changes.
#include <utility>

#include <gtest/gtest.h>

#include "pkg/config/yaml_reader.h"
#include "pkg/policy/testing/test_snapshot.h"
#include "test/integration/brain/world.h"

namespace resmgr::test {

StatusOr<std::unique_ptr<Policy>> World::MakePolicy(const Configuration& configuration) const {
  RESMGR_ASSIGN_OR_RETURN(const ConfigNode section, ParseYaml(configuration.section, "test.yaml"));
  const Configuration effective = Effective(configuration);
  if (effective.available.empty()) return InvalidArgument("all of its CPUs are offline");
  return configuration.factory.create({.machine = *found_,
                                       .available = effective.available,
                                       .reserved = effective.reserved,
                                       .section = &section});
}

// Better places on demand, another policy, or other options. Calls under way go on meanwhile.
void World::ChangeConfiguration() {
  unsaved_moves_ |= files_.stopping();
  if (Chance(30)) {
    const auto moves = node_.manager().Rebalance();
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
  node_.manager().SetPolicy(
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
