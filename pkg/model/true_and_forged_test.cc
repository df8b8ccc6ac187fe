// SPDX-License-Identifier: Apache-2.0
// Compares the annotation with the kubelets' requests for pods: the annotation of the same pod is
// used, and that of another pod gives no more than the request shows.
#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "pkg/kube/cpu_arithmetic.h"
#include "pkg/model/requirements.h"
#include "test/support/seed.h"

namespace resmgr {
namespace {

using nlohmann::json;

constexpr Bytes kCapacity{(int64_t{512} << 30) + 4321};

// A container as its manifest has it, and as the kubelet asks for it.
struct Spec {
  std::string name;
  Requirements own;
  LinuxResources asked;
};

struct PodSpec {
  Pod pod;
  bool pod_level = false;
  Requirements whole;
  std::vector<Spec> containers;
};

class Generator {
 public:
  explicit Generator(uint64_t seed) : random_(seed) {}

  int64_t Number(int64_t first, int64_t last) {
    return std::uniform_int_distribution<int64_t>(first, last)(random_);
  }
  bool OneIn(int64_t chance) { return Number(1, chance) == 1; }

  PodSpec NextPod() {
    PodSpec spec;
    spec.pod_level = OneIn(3);
    const bool guaranteed = OneIn(2);
    const bool best_effort = !spec.pod_level && OneIn(4);
    for (int64_t i = Number(1, 4); i > 0; --i) {
      const bool none = best_effort || (spec.pod_level && OneIn(2));
      spec.containers.push_back(
          {"c" + std::to_string(i), none ? Requirements() : NextNeeds(guaranteed), {}});
    }
    spec.whole = SumOf(spec.containers);
    if (spec.pod_level) {
      spec.whole.cpu_request.value += Number(0, 4) * 1000;
      spec.whole.memory_request.value += Number(1, 64) << 28;
      const int64_t more = guaranteed ? 0 : Number(0, 2) * 1000;
      spec.whole.cpu_limit.value =
          std::max(spec.whole.cpu_request.value, MostCpuLimit(spec)) + more;
      spec.whole.memory_limit.value =
          std::max(spec.whole.memory_request.value, MostMemoryLimit(spec)) + more;
      // Sets defaults as the API server does.
      if (guaranteed || spec.whole.cpu_request.value == 0) {
        spec.whole.cpu_request = spec.whole.cpu_limit;
        spec.whole.memory_request = spec.whole.memory_limit;
      }
    }
    Complete(spec);
    return spec;
  }

 private:
  int64_t NextMilli() {
    switch (Number(0, 4)) {
      case 0:
        return Number(1, 12);
      case 1:
        return Number(1, 16) * 1000;
      case 2:
        return Number(250'000, 400'000);
      default:
        return Number(1, 64'000);
    }
  }
  Requirements NextNeeds(bool guaranteed) {
    Requirements needs{{NextMilli()}, {}, {Number(1, int64_t{100} << 30)}, {}};
    if (guaranteed || OneIn(2)) needs.cpu_limit = needs.cpu_request;
    if (guaranteed || OneIn(2)) needs.memory_limit = needs.memory_request;
    if (guaranteed) return needs;
    if (needs.cpu_limit.value > 0 && OneIn(2)) needs.cpu_limit.value += NextMilli();
    if (needs.memory_limit.value > 0 && OneIn(2)) needs.memory_limit.value += 1 << 20;
    if (needs.cpu_limit.value == 0 && OneIn(4)) needs.cpu_request = {};
    if (needs.memory_limit.value == 0 && OneIn(2)) needs.memory_request = {};
    return needs;
  }
  static Requirements SumOf(const std::vector<Spec>& containers) {
    Requirements sum;
    for (const Spec& spec : containers) {
      sum.cpu_request = sum.cpu_request + spec.own.cpu_request;
      sum.cpu_limit = sum.cpu_limit + spec.own.cpu_limit;
      sum.memory_request = sum.memory_request + spec.own.memory_request;
      sum.memory_limit = sum.memory_limit + spec.own.memory_limit;
    }
    return sum;
  }
  static int64_t MostCpuLimit(const PodSpec& spec) {
    int64_t most = 0;
    for (const Spec& container : spec.containers)
      most = std::max(most, container.own.cpu_limit.value);
    return most;
  }
  static int64_t MostMemoryLimit(const PodSpec& spec) {
    int64_t most = 0;
    for (const Spec& container : spec.containers)
      most = std::max(most, container.own.memory_limit.value);
    return most;
  }
  static void Complete(PodSpec& spec) {
    std::vector<Requirements> all;
    for (const Spec& container : spec.containers)
      all.push_back(container.own);
    spec.pod.qos = spec.pod_level ? QosOf({&spec.whole, 1}) : QosOf(all);
    spec.pod.resources = KubeletResources(spec.whole, QosClass::kBurstable, {}, {});
    for (Spec& container : spec.containers) {
      Requirements needs = container.own;
      if (spec.pod_level && needs.cpu_limit.value == 0) needs.cpu_limit = spec.whole.cpu_limit;
      if (spec.pod_level && needs.memory_limit.value == 0) {
        needs.memory_limit = spec.whole.memory_limit;
      }
      container.asked =
          KubeletResources(needs, spec.pod.qos, container.own.memory_request, kCapacity);
    }
  }

  std::mt19937_64 random_;
};

// The annotation in the webhook's form.
std::string AnnotationOf(const PodSpec& spec) {
  json containers = json::object();
  for (const Spec& container : spec.containers) {
    json& entry = containers[container.name] = json::object();
    const Requirements& own = container.own;
    if (own.cpu_limit.value > 0) entry["limits"]["cpu"] = fmt::format("{}m", own.cpu_limit.value);
    if (own.memory_limit.value > 0) entry["limits"]["memory"] = own.memory_limit.value;
    if (own.cpu_request.value > 0) {
      entry["requests"]["cpu"] = fmt::format("{}m", own.cpu_request.value);
    }
    if (own.memory_request.value > 0) entry["requests"]["memory"] = own.memory_request.value;
  }
  return json({{"containers", containers}, {"initContainers", json::object()}}).dump();
}

TEST(TrueAndForgedTest, TheAnnotationOfThePodItselfIsTaken) {
  const uint64_t seed = test::SeedOr(1);
  SCOPED_TRACE(test::Repeat(seed));
  Generator generator(seed);
  for (int round = 0; round < 3000; ++round) {
    PodSpec spec = generator.NextPod();
    const std::string annotation = AnnotationOf(spec);
    spec.pod.annotations.Set("intel.com/resources", annotation);
    for (const Spec& container : spec.containers) {
      const auto [needs, usable, note] =
          ResolveRequirements(container.asked, spec.pod, kCapacity, container.name);
      SCOPED_TRACE(testing::Message() << round << " " << container.name << " " << annotation);
      ASSERT_TRUE(usable.ok());
      ASSERT_EQ(note, "");
      ASSERT_EQ(needs.cpu_request, container.own.cpu_request);
      ASSERT_EQ(needs.memory_request, container.own.memory_request);
      ASSERT_FALSE(needs.memory_estimated);
      const bool own_cpu = container.own.cpu_request.value > 0 || container.own.cpu_limit.value > 0;
      ASSERT_FALSE(needs.cpu_of_pod && own_cpu);
      const MilliCpu limit = spec.pod_level && container.own.cpu_limit.value == 0
                                 ? spec.whole.cpu_limit
                                 : container.own.cpu_limit;
      if (limit.value == 0 || limit.value >= 10) {
        ASSERT_EQ(needs.cpu_limit, limit);
      }
      // Exclusive CPUs are exactly those that the kubelet would make exclusive.
      const bool exclusive =
          spec.pod.qos == QosClass::kGuaranteed && own_cpu && container.own.cpu_request == limit;
      if (spec.pod.qos == QosClass::kGuaranteed && needs.cpu_request.value > 0) {
        ASSERT_EQ(WhyCpuIsOfPod(needs).empty(), exclusive);
      }
    }
  }
}

TEST(TrueAndForgedTest, AnotherAnnotationGivesNoMoreThanTheRequestShows) {
  const uint64_t seed = test::SeedOr(1);
  SCOPED_TRACE(test::Repeat(seed));
  Generator generator(seed);
  int told = 0;
  for (int round = 0; round < 3000; ++round) {
    PodSpec spec = generator.NextPod();
    const std::string annotation = AnnotationOf(generator.NextPod());
    spec.pod.annotations.Set("intel.com/resources", annotation);
    for (const Spec& container : spec.containers) {
      const auto [needs, usable, note] =
          ResolveRequirements(container.asked, spec.pod, kCapacity, container.name);
      SCOPED_TRACE(testing::Message() << round << " " << container.name << " " << annotation);
      ASSERT_TRUE(usable.ok());
      if (!note.empty()) ++told;
      const Requirements shown = EstimateRequirements(container.asked, spec.pod.qos, kCapacity);
      const MilliCpu limit = CpuLimitOf(container.asked);
      if (spec.pod.qos == QosClass::kBestEffort) {
        ASSERT_EQ(needs.cpu_request.value, 0);
        ASSERT_EQ(needs.memory_request.value, 0);
      }
      ASSERT_EQ(needs.memory_limit, shown.memory_limit);
      if (needs.memory_limit.value > 0) {
        ASSERT_LE(needs.memory_request, needs.memory_limit);
      }
      if (SharesTell(shown.cpu_request)) {
        ASSERT_LE(needs.cpu_request, std::max(shown.cpu_request, MilliCpu{2}));
      } else if (limit.value > 0) {
        ASSERT_LE(needs.cpu_request, std::max(limit, shown.cpu_request));
      }
      if (limit.value > 0) {
        ASSERT_LE(needs.cpu_limit, std::max(limit, needs.cpu_request));
      }
      const int64_t score = container.asked.oom_score_adj.value_or(0);
      if (spec.pod.qos == QosClass::kBurstable && score > 3) {
        const int64_t thousandth = kCapacity.value / 1000;
        ASSERT_LE(needs.memory_request.value,
                  (1000 - score) * thousandth * 51 / 50 + 3 * thousandth);
      }
    }
  }
  EXPECT_GT(told, 1000) << "most contradict";
}

// For any request of a kubelet, the containers of a pod together have no more than the pod.
TEST(TrueAndForgedTest, ContainersHaveNoMoreThanTheirPod) {
  const uint64_t seed = test::SeedOr(1);
  SCOPED_TRACE(test::Repeat(seed));
  Generator generator(seed);
  for (int round = 0; round < 3000; ++round) {
    PodSpec spec = generator.NextPod();
    if (generator.OneIn(2)) spec.pod.annotations.Set("intel.com/resources", AnnotationOf(spec));
    std::vector<Container> containers(spec.containers.size());
    std::vector<PodMember> members;
    for (size_t i = 0; i < containers.size(); ++i) {
      Container& container = containers[i];
      container.name = spec.containers[i].name;
      container.requested = spec.containers[i].asked;
      container.requirements =
          ResolveRequirements(container.requested, spec.pod, {}, container.name).requirements;
      members.push_back({&container, container.requirements});
      // The members come one after the other.
      DivideAmong(spec.pod, members);
      for (PodMember& member : members)
        containers[static_cast<size_t>(&member - members.data())].requirements = member.needs;
    }
    int64_t cpu = 0;
    int64_t memory = 0;
    for (size_t i = 0; i < members.size(); ++i) {
      cpu += members[i].needs.cpu_request.value;
      memory += members[i].needs.memory_request.value;
      if (!spec.pod_level) {
        ASSERT_FALSE(members[i].needs.cpu_of_pod) << round;
      }
    }
    // Beyond the range of shares, only the limits show the request.
    if (!SharesTell(spec.whole.cpu_request)) continue;
    ASSERT_LE(cpu, std::max<int64_t>(spec.whole.cpu_request.value, 2)) << round;
    if (spec.pod.qos == QosClass::kGuaranteed) {
      ASSERT_LE(memory, spec.whole.memory_limit.value) << round;
    }
  }
}

}  // namespace
}  // namespace resmgr
