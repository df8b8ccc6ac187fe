// SPDX-License-Identifier: Apache-2.0
// Invariants over random machines, types and streams of containers.
#include <algorithm>
#include <array>
#include <chrono>
#include <functional>
#include <map>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "policies/balloons/testing/balloons_node.h"

namespace resmgr {
namespace {

using test::BalloonsNode;

constexpr std::array<std::string_view, 8> kWideNamespaces = {
    "pair", "fixed", "flex", "sharing", "new", "spread", "small", "kube-system"};
constexpr std::string_view kTypes = R"(
- {name: flex, namespaces: [flex]}
- {name: new, namespaces: [new], preferNewBalloons: true, allocatorTopologyBalancing: true}
- {name: small, namespaces: [small], minCPUs: 1, maxCPUs: 3, preferSpreadingPods: true}
- {name: sharing, namespaces: [sharing], shareIdleCPUsInSame: numa, preferNewBalloons: true}
- {name: spread, namespaces: [spread], preferSpreadOnPhysicalCores: true, hideHyperthreads: true}
- {name: close, namespaces: [close], preferCloseToDevices: [/sys/devices/system/node/node0]}
)";
// Types with limits, composites and rooms; each {} is a number that a configuration may change.
constexpr std::string_view kWideTypes = R"(
- {{name: leaf}}
- {{name: pair, namespaces: [pair], preferNewBalloons: true, components: [{{balloonType: leaf}}, {{balloonType: leaf}}]}}
- {{name: fixed, namespaces: [fixed], cpus: "{0}-2", maxCPUs: 4{2}}}
- {{name: parts, namespaces: [flex], minCPUs: 1, instances: 1 per package}}
- {{name: grows, namespaces: [sharing], maxCPUs: {1}, growWithin: numa}}
- {{name: pods, namespaces: [new], maxPods: {1}, groupBy: "${{qosclass}}"}}
- {{name: hidden, namespaces: [spread], hideHyperthreads: true, shareIdleCPUsInSame: package}}
- {{name: bounds, namespaces: [small], minCPUs: {0}, maxCPUs: 3}}
)";
constexpr std::array<std::string_view, 8> kNamespaces = {"flex",   "new",   "small", "sharing",
                                                         "spread", "close", "other", "kube-system"};

std::string Section(bool overcommit) {
  return fmt::format("reservedResources: {{cpu: \"1\"}}\nwhenShort: {}\nballoonTypes:{}",
                     overcommit ? "overcommit" : "refuse", kTypes);
}

std::string WideSection(int low, int high, bool room, bool overcommit) {
  return fmt::format(
      "reservedResources: {{cpu: \"1\"}}\nwhenShort: {}\nballoonTypes:{}",
      overcommit ? "overcommit" : "refuse",
      fmt::format(fmt::runtime(kWideTypes), low, high, room ? ", growWithin: package" : ""));
}

// The first types, which follow use.
std::string FollowingSection() {
  constexpr std::string_view kStart = "- {name: ";
  std::string types(kTypes);
  for (size_t at = types.find(kStart); at != std::string::npos; at = types.find(kStart, at + 1)) {
    types.replace(at, kStart.size(), "- {followUse: {growAbove: 70, pause: 10s}, name: ");
  }
  return fmt::format("reservedResources: {{cpu: \"1\"}}\nballoonTypes:{}", types);
}

Machine RandomMachine(std::mt19937& random, int least_cores = 2) {
  const auto number = [&](int from, int to) {
    return std::uniform_int_distribution<int>(from, to)(random);
  };
  test::Shape shape;
  shape.packages = number(1, 2);
  shape.nodes = number(1, 3);
  shape.l3s = number(0, 2);
  shape.cores = std::max(shape.l3s, 1) * number(least_cores, std::max(least_cores, 4));
  shape.threads = number(1, 2);
  shape.siblings_apart = number(0, 1) == 1;
  return test::MakeMachine(shape);
}

class Stream {
 public:
  Stream(unsigned seed, bool overcommit)
      : random_(seed),
        overcommit_(overcommit),
        node_(Section(overcommit), RandomMachine(random_)) {}

  // A stream with the wide types, on machines with room for the balloons that always exist. `room`:
  // some streams have room for the balloon with listed CPUs, too.
  static Stream Wide(unsigned seed, bool overcommit, bool room) {
    return {seed, overcommit, std::mt19937(seed), room && seed % 2 == 1};
  }

  static Stream Following(unsigned seed) { return {seed, FollowingSection()}; }

  BalloonsNode& node() { return node_; }
  // Ten seconds later, any container may use anything.
  void Use() {
    std::map<ContainerKey, double> cpus;
    for (const ContainerKey key : keys_) {
      if (Number(0, 9) > 0) cpus[key] = Number(0, 60) / 10.0;
    }
    time_ += std::chrono::seconds(10);
    node_.FollowUse(cpus, time_);
  }
  // Other limits, as an administrator would set them.
  void ChangeLimits() {
    changed_ = true;
    const int low = Number(1, 2);
    high_ = Number(1, 3);
    node_.ChangeSection(WideSection(low, high_, room_, overcommit_));
    node_.Reconcile();
  }
  int64_t refused_wrongly() const { return refused_wrongly_; }

  int Number(int from, int to) { return std::uniform_int_distribution<int>(from, to)(random_); }
  // One creation, removal or resize, as a scheduler would send it.
  void Step() {
    const int what = Number(0, 9);
    if (what < 6 || keys_.empty()) {
      Create();
    } else if (what < 8) {
      const auto at = keys_.begin() + Number(0, static_cast<int>(keys_.size()) - 1);
      node_.Remove(*at);
      keys_.erase(at);
    } else {
      Resize(keys_[static_cast<size_t>(Number(0, static_cast<int>(keys_.size()) - 1))]);
    }
  }
  int64_t Requested() {
    int64_t sum = 0;
    node_.snapshot().ForEachContainer([&](const Pod&, const Container& container) {
      sum += container.requirements.cpu_request.value;
    });
    return sum;
  }
  int64_t Allocatable() { return int64_t{1000} * (node_.machine().online().size() - 1); }

  void Check() {
    CpuSet taken;
    std::map<std::string, CpuSet> own;
    for (const Zone& zone : node_.policy().Zones(node_.snapshot())) {
      ASSERT_FALSE(zone.cpus.Intersects(taken)) << zone.name;
      taken |= zone.cpus;
      own[zone.name] = zone.cpus;
      if (zone.kind == "idle") continue;
      const int size = zone.cpus.size();
      if (zone.name.starts_with("small") || zone.name.starts_with("bounds")) {
        ASSERT_LE(size, 3);
      }
      if (!overcommit_ && !changed_) {
        ASSERT_LE(zone.shared_request.value, 1000 * size) << zone.name;
      }
    }
    ASSERT_EQ(taken, node_.machine().online());
    node_.snapshot().ForEachContainer([&](const Pod&, const Container& container) {
      const Placement& placement = container.placement;
      ASSERT_TRUE(placement.cpus && !placement.cpus->empty());
      ASSERT_TRUE(placement.cpus->Intersects(own[placement.pool])) << placement.pool;
      for (const auto& [name, cpus] : own) {
        if (name != placement.pool && name != "idle") {
          ASSERT_FALSE(cpus.Intersects(*placement.cpus)) << placement.pool << " on " << name;
        }
      }
    });
  }
  std::string Zones() {
    std::string text;
    for (const Zone& zone : node_.policy().Zones(node_.snapshot()))
      text += fmt::format("{} {} {}\n", zone.name, zone.cpus.ToString(), zone.containers);
    return text;
  }

 private:
  Stream(unsigned seed, const std::string& section)
      : random_(seed), overcommit_(true), node_(section, RandomMachine(random_)) {}
  Stream(unsigned seed, bool overcommit, std::mt19937 random, bool room)
      : random_(seed),
        overcommit_(overcommit),
        wide_(true),
        room_(room),
        node_(WideSection(1, high_, room, overcommit), RandomMachine(random, room ? 6 : 4)) {}

  // Whether the type's own containers, this one included, ask for more than its limit allows.
  bool ExceedsItsType(std::string_view ns, int64_t request) {
    if (ns == "sharing") return request > int64_t{1000} * high_;
    if (ns != "fixed") return false;
    node_.snapshot().ForEachContainer([&](const Pod& pod, const Container& container) {
      const bool counts = pod.namespace_name == ns && container.placement.pool == "fixed[0]";
      if (counts) request += container.requirements.cpu_request.value;
    });
    return request > 4000;
  }
  // Limits of types may refuse it; guests and the lack of CPUs may not.
  void CreateWide(int left) {
    const std::string_view ns = kWideNamespaces[static_cast<size_t>(Number(0, 7))];
    const int64_t request = Number(0, 4) == 0 ? 0 : Number(1, std::min(left, 2000));
    const StatusOr<ContainerKey> key =
        node_.Run(fmt::format("c{}", ++count_), {.namespace_name = ns, .request = request});
    if (key.ok()) {
      keys_.push_back(*key);
    } else if (overcommit_) {
      EXPECT_TRUE(ExceedsItsType(ns, request)) << key.status();
    }
  }
  void Create() {
    const auto left = static_cast<int>(Allocatable() - Requested());
    if (left < 50) return;
    if (wide_) return CreateWide(left);
    const int64_t request = Number(0, 4) == 0 ? 0 : Number(1, std::min(left, 4000));
    const std::string_view ns = kNamespaces[static_cast<size_t>(Number(0, 7))];
    // A request beyond the limit of its type may be refused.
    const int64_t asked = ns == "small" ? std::min<int64_t>(request, 3000) : request;
    const StatusOr<ContainerKey> key =
        node_.Run(fmt::format("c{}", ++count_), {.namespace_name = ns, .request = asked});
    if (key.ok()) {
      keys_.push_back(*key);
    } else if (overcommit_) {
      ++refused_wrongly_;
      ADD_FAILURE() << key.status();
    }
  }
  void Resize(ContainerKey key) {
    const auto left = static_cast<int>(Allocatable() - Requested());
    const auto now = static_cast<int>(node_.snapshot().At(key).requirements.cpu_request.value);
    const int most = node_.snapshot().PodOf(key).namespace_name == "small" ? 3000 : 4000;
    const Status status = node_.Resize(key, Number(0, std::min(now + left, most)));
    EXPECT_TRUE(status.ok() || !overcommit_ || wide_) << status;
  }

  std::mt19937 random_;
  const bool overcommit_;
  const bool wide_ = false;
  const bool room_ = false;  // whether room is kept for the balloon with listed CPUs
  bool changed_ = false;     // limits may be lower than what containers ask for
  int high_ = 2;             // the second number of WideSection
  BalloonsNode node_;
  std::vector<ContainerKey> keys_;
  int count_ = 0;
  std::chrono::seconds time_{0};
  int64_t refused_wrongly_ = 0;
};

// Nothing else happens between the steps.
void StepOnly(Stream& stream, int) {
  stream.Step();
}

void StepAndUse(Stream& stream, int step) {
  stream.Step();
  if (step % 3 == 2) stream.Use();
}

void LeaveAsItIs(Stream&, unsigned) {}

void ExpectThatARestartMovesNothing(Stream& stream, unsigned seed) {
  stream.node().RestartPolicy();
  for (const PlacementChange& change : stream.node().Reconcile().changes) {
    ADD_FAILURE() << "seed " << seed << ": " << change.placement.pool << ", "
                  << change.placement.reason;
  }
  stream.Check();
}

// Sixty streams of so many steps, after each of which the rules hold, and `end` of each.
void LiveAll(const std::function<Stream(unsigned seed)>& make, int steps,
             void (*step)(Stream&, int) = StepOnly,
             const std::function<void(Stream&, unsigned seed)>& end = LeaveAsItIs) {
  for (unsigned seed = 0; seed < 60; ++seed) {
    Stream stream = make(seed);
    for (int i = 0; i < steps && !testing::Test::HasFailure(); ++i) {
      step(stream, i);
      stream.Check();
    }
    end(stream, seed);
    ASSERT_FALSE(testing::Test::HasFailure()) << "seed " << seed;
  }
}

std::function<Stream(unsigned seed)> Plain(bool overcommit) {
  return [overcommit](unsigned seed) { return Stream(seed, overcommit); };
}

// A restart may choose another room, so that containers which share idle CPUs see others.
std::function<Stream(unsigned seed)> Wide(bool overcommit, bool room = false) {
  return [=](unsigned seed) { return Stream::Wide(seed, overcommit, room); };
}

TEST(BalloonsPropertyTest, WhatASchedulerSendsIsNeverRefused) {
  LiveAll(Plain(true), 60);
}

TEST(BalloonsPropertyTest, RequestsAreNeverAboveCpusWithoutOvercommit) {
  LiveAll(Plain(false), 60);
}

TEST(BalloonsPropertyTest, UseTakesNothingFromRequests) {
  LiveAll(Stream::Following, 60, StepAndUse, ExpectThatARestartMovesNothing);
}

TEST(BalloonsPropertyTest, TheSameOrderGivesTheSameResult) {
  for (unsigned seed = 0; seed < 10; ++seed) {
    Stream one(seed, true);
    Stream two(seed, true);
    for (int i = 0; i < 50; ++i) {
      one.Step();
      two.Step();
    }
    ASSERT_EQ(one.Zones(), two.Zones()) << seed;
  }
}

TEST(BalloonsPropertyTest, ARestartMovesNothing) {
  LiveAll(Plain(true), 40, StepOnly, ExpectThatARestartMovesNothing);
}

TEST(BalloonsPropertyTest, LimitsAndCompositesHoldTheSame) {
  for (const bool overcommit : {true, false}) {
    SCOPED_TRACE(overcommit);
    LiveAll(Wide(overcommit, true), 50);
  }
}

TEST(BalloonsPropertyTest, ChangedLimitsLeaveAllContainersWithCpus) {
  LiveAll(Wide(true, true), 50, [](Stream& stream, int step) {
    if (step % 10 == 9) stream.ChangeLimits();
    stream.Step();
  });
}

TEST(BalloonsPropertyTest, ARestartMovesNothingOfCompositesAndRooms) {
  LiveAll(Wide(true), 40, StepOnly, ExpectThatARestartMovesNothing);
}

// Lost without the state: names, numbers and which CPUs are a balloon's own. Returns the number of
// containers.
int ExpectThatALossOfStateMovesNothing(Stream& stream, unsigned seed) {
  std::map<ContainerKey, std::string> before;
  stream.node().snapshot().ForEachContainer([&](const Pod&, const Container& container) {
    before[container.key] = stream.node().CpusOf(container.key);
  });
  const std::string zones = stream.Zones();
  stream.node().ForgetDecisions();
  // Nor when it is looked at again, now with names.
  for (int i = 0; i < 2; ++i) {
    stream.node().Reconcile();
    for (const auto& [key, cpus] : before) {
      EXPECT_EQ(stream.node().CpusOf(key), cpus)
          << "seed " << seed << " " << stream.node().snapshot().At(key).name << " in "
          << stream.node().PoolOf(key) << "\n"
          << zones;
    }
    stream.Check();
  }
  return static_cast<int>(before.size());
}

// Returns the number of containers of all streams.
int LoseTheStateOfAll(const std::function<Stream(unsigned seed)>& make,
                      void (*step)(Stream&, int) = StepOnly) {
  int all = 0;
  LiveAll(make, 40, step, [&all](Stream& stream, unsigned seed) {
    all += ExpectThatALossOfStateMovesNothing(stream, seed);
  });
  return all;
}

TEST(BalloonsPropertyTest, ARestartWithoutStateMovesNoContainer) {
  EXPECT_GT(LoseTheStateOfAll(Plain(false)) + LoseTheStateOfAll(Plain(true)), 1000);
}

TEST(BalloonsPropertyTest, ARestartWithoutStateMovesNothingOfCompositesAndRooms) {
  EXPECT_GT(LoseTheStateOfAll(Wide(false)) + LoseTheStateOfAll(Wide(true)), 1000);
}

TEST(BalloonsPropertyTest, ARestartWithoutStateMovesNothingThatFollowsUse) {
  EXPECT_GT(LoseTheStateOfAll(Stream::Following, StepAndUse), 500);
}

}  // namespace
}  // namespace resmgr
