// SPDX-License-Identifier: Apache-2.0
#include "policies/static-plus/static_plus_policy.h"

#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/integration/brain/policy_node.h"

namespace resmgr {
namespace {

using test::Cpus;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

using enum QosClass;

class Node : public test::PolicyNode {
 public:
  explicit Node(Machine machine, std::string_view reserved = "0", std::string_view section = "")
      : PolicyNode(StaticPlusPolicyFactory(), std::move(machine), reserved, section) {}

  // Creates a container with annotations, or in another namespace.
  StatusOr<ContainerKey> CreateAs(std::string_view name, QosClass qos, int64_t milli_cpu,
                                  const StringMap& annotations,
                                  std::string_view namespace_name = "ns") {
    const ContainerKey key = snapshot().Add(name, qos, milli_cpu).key;
    snapshot().PodOf(key).annotations = annotations;
    snapshot().PodOf(key).namespace_name = namespace_name;
    return Place(key);
  }
};

Status CreateError(std::string_view reserved, std::string_view section) {
  return test::CreateError(StaticPlusPolicyFactory(), test::S1Ht(), reserved, section);
}

TEST(StaticPlusPolicyTest, WholeCpusAreExclusiveForEveryClass) {
  Node node(test::M80());
  for (const QosClass qos : {kGuaranteed, kBurstable}) {
    const ContainerKey two = *node.Create(ToString(qos), qos, 2000);
    EXPECT_EQ(node.PlacementOf(two).exclusive.size(), 2);
    EXPECT_EQ(node.CpusOf(two), node.ExclusiveOf(two));
    EXPECT_EQ(node.PlacementOf(two).cpu_quota, -1);
    EXPECT_FALSE(node.PlacementOf(two).cpu_shares.has_value());
    EXPECT_EQ(node.PlacementOf(two).pool, "exclusive");
    EXPECT_EQ(node.PlacementOf(two).reason, "CPU request of 2000m: ordinary CPUs");
  }
}

TEST(StaticPlusPolicyTest, TheFractionComesFromTheSharedCpus) {
  Node node(test::S1Ht());
  const ContainerKey mixed = *node.Create("mixed", kBurstable, 2500);
  EXPECT_EQ(node.ExclusiveOf(mixed), "1,5");
  EXPECT_EQ(node.CpusOf(mixed), "1-7") << "all but the reserved CPU";
  EXPECT_FALSE(node.PlacementOf(mixed).cpu_quota.has_value()) << "it bounds what it shares";
  EXPECT_EQ(node.PlacementOf(mixed).reason,
            "CPU request of 2500m, 500m of it shared: ordinary CPUs");
  const ContainerKey shared = *node.Create("shared", kBurstable, 500);
  EXPECT_EQ(node.CpusOf(shared), "2-4,6-7");
  const ContainerKey other = *node.Create("other", kGuaranteed, 1200);
  EXPECT_EQ(node.ExclusiveOf(other), "4");
  EXPECT_EQ(node.CpusOf(other), "2-4,6-7");
  EXPECT_EQ(node.CpusOf(mixed), "1-3,5-7") << "its shared part shrinks, its own stays";
  node.Remove(other);
  EXPECT_EQ(node.CpusOf(mixed), "1-7");
}

TEST(StaticPlusPolicyTest, LessThanOneCpuShares) {
  Node node(test::S1Ht());
  const ContainerKey fraction = *node.Create("fraction", kGuaranteed, 999);
  const ContainerKey nothing = *node.Create("nothing", kBestEffort, 0);
  EXPECT_EQ(node.CpusOf(fraction), "1-7");
  EXPECT_EQ(node.PlacementOf(fraction).reason, "CPU request of 999m is less than one CPU");
  EXPECT_EQ(node.CpusOf(nothing), "1-7");
  EXPECT_EQ(node.PlacementOf(nothing).reason, "no CPU request");
  EXPECT_EQ(node.PlacementOf(nothing).pool, "shared");
}

TEST(StaticPlusPolicyTest, SystemNamespacesRunOnTheReservedCpus) {
  Node node(test::S1Ht(), "0,4", "{ReservedPoolNamespaces: [monitoring, 'infra-*']}");
  const std::vector<std::pair<std::string, std::string>> cases = {{"kube-system", "0,4"},
                                                                  {"monitoring", "0,4"},
                                                                  {"infra-a", "0,4"},
                                                                  {"infra", "1-3,5-7"},
                                                                  {"kube-public", "1-3,5-7"}};
  for (const auto& [name, cpus] : cases) {
    const ContainerKey key = *node.CreateAs("c", kBurstable, 500, {}, name);
    EXPECT_EQ(node.CpusOf(key), cpus) << name;
  }
  const ContainerKey big = *node.CreateAs("big", kGuaranteed, 3000, {}, "kube-system");
  EXPECT_EQ(node.CpusOf(big), "0,4") << "whatever it asks for";
  EXPECT_EQ(node.PlacementOf(big).pool, "reserved");
  EXPECT_EQ(node.PlacementOf(big).reason, "namespace kube-system");
}

TEST(StaticPlusPolicyTest, AnnotationsChooseTheReservedPool) {
  Node node(test::S1Ht(), "0", "{PrivilegedNamespaces: ['n?']}");
  const StringMap yes = {{"prefer-reserved-cpus.cri-resource-manager.intel.com", "true"}};
  const StringMap no = {{"prefer-reserved-cpus.resource-policy.nri.io/pod", "false"}};
  EXPECT_EQ(node.CpusOf(*node.CreateAs("in", kBurstable, 2000, yes)), "0");
  EXPECT_EQ(node.ExclusiveOf(*node.CreateAs("out", kBurstable, 2000, no, "kube-system")), "1,5");
}

TEST(StaticPlusPolicyTest, OnlyPodsOfPrivilegedNamespacesChooseTheReservedPool) {
  Node node(test::S1Ht(), "0", "{ReservedPoolNamespaces: [monitoring]}");
  const StringMap yes = {{"prefer-reserved-cpus.resource-policy.nri.io", "true"}};
  const auto unheeded = [&node](ContainerKey key) {
    return node.policy().Unheeded(node.snapshot().PodOf(key), node.snapshot().At(key));
  };
  const ContainerKey shared = *node.CreateAs("a", kBurstable, 500, yes);
  const ContainerKey exclusive = *node.CreateAs("b", kBurstable, 2000, yes);
  const std::string why =
      "annotation prefer-reserved-cpus ignored: namespace ns is not in "
      "policy.static-plus.PrivilegedNamespaces";
  EXPECT_EQ(node.CpusOf(shared), "2-4,6-7");
  EXPECT_EQ(node.ExclusiveOf(exclusive), "1,5");
  for (const ContainerKey key : {shared, exclusive}) {
    EXPECT_THAT(node.PlacementOf(key).reason, HasSubstr(why));
    EXPECT_THAT(unheeded(key), ElementsAre(why));
  }
  for (const char* const name_space : {"kube-system", "monitoring"}) {
    const ContainerKey key = *node.CreateAs("c", kBurstable, 500, yes, name_space);
    EXPECT_EQ(node.CpusOf(key), "0");
    EXPECT_THAT(unheeded(key), IsEmpty());
  }
  node.RestartPolicy();
  EXPECT_THAT(node.Reconcile().changes, IsEmpty());
}

TEST(StaticPlusPolicyTest, WithoutReservedCpusSystemContainersShare) {
  Node node(test::S1Ht(), "");
  const ContainerKey system = *node.CreateAs("dns", kBurstable, 2000, {}, "kube-system");
  EXPECT_EQ(node.CpusOf(system), "0-7");
  EXPECT_EQ(node.PlacementOf(system).reason, "namespace kube-system, but no CPUs are reserved");
}

TEST(StaticPlusPolicyTest, AnnotationsOptOutByPodAndByContainer) {
  Node node(test::S1Ht());
  const ContainerKey pod = *node.CreateAs(
      "pod", kGuaranteed, 2000, {{"prefer-shared-cpus.cri-resource-manager.intel.com", "true"}});
  EXPECT_EQ(node.ExclusiveOf(pod), "");
  EXPECT_EQ(node.PlacementOf(pod).reason, "annotation prefer-shared-cpus");
  const StringMap narrow = {
      {"prefer-shared-cpus.cri-resource-manager.intel.com/pod", "true"},
      {"prefer-shared-cpus.cri-resource-manager.intel.com/container.main", "false"}};
  EXPECT_EQ(node.ExclusiveOf(*node.CreateAs("main", kGuaranteed, 1000, narrow)), "4");
  EXPECT_EQ(node.ExclusiveOf(*node.CreateAs("side", kGuaranteed, 1000, narrow)), "");
}

TEST(StaticPlusPolicyTest, ReadsTheOldFormOfAnnotations) {
  Node node(test::S1Ht());
  const StringMap old = {{"cri-resource-manager.intel.com/prefer-shared-cpus", "main: true"}};
  EXPECT_EQ(node.ExclusiveOf(*node.CreateAs("main", kGuaranteed, 2000, old)), "");
  EXPECT_EQ(node.ExclusiveOf(*node.CreateAs("side", kGuaranteed, 2000, old)), "1,5");
}

TEST(StaticPlusPolicyTest, OptionsLimitWhichContainersGetExclusiveCpus) {
  const StringMap wish = {{"prefer-shared-cpus.resource-policy.nri.io", "false"}};
  Node guaranteed(test::S1Ht(), "0", "{ExclusiveCPUs: guaranteed}");
  EXPECT_EQ(guaranteed.PlacementOf(*guaranteed.Create("g", kGuaranteed, 1000)).exclusive.size(), 1);
  const ContainerKey burstable = *guaranteed.Create("b", kBurstable, 1000);
  EXPECT_EQ(guaranteed.ExclusiveOf(burstable), "");
  EXPECT_EQ(guaranteed.PlacementOf(burstable).reason, "Burstable pod");
  EXPECT_EQ(
      guaranteed.PlacementOf(*guaranteed.CreateAs("w", kBurstable, 1000, wish)).exclusive.size(),
      1);
  Node annotated(test::S1Ht(), "0", "{ExclusiveCPUs: annotated}");
  EXPECT_EQ(annotated.ExclusiveOf(*annotated.Create("g", kGuaranteed, 1000)), "");
  EXPECT_EQ(
      annotated.PlacementOf(*annotated.CreateAs("w", kBurstable, 1000, wish)).exclusive.size(), 1);
}

TEST(StaticPlusPolicyTest, IsolatedCpusComeFirst) {
  Node node(test::WithIsolated(test::M80(), "10-13,50-53"));
  const ContainerKey first = *node.Create("first", kBurstable, 3000);
  EXPECT_TRUE(Cpus(node.ExclusiveOf(first)).IsSubsetOf(Cpus("10-13,50-53")));
  EXPECT_EQ(node.PlacementOf(first).pool, "isolated");
  const ContainerKey large = *node.Create("large", kBurstable, 6000);
  EXPECT_FALSE(Cpus(node.ExclusiveOf(large)).Intersects(Cpus("10-13,50-53"))) << "too few are left";
  const ContainerKey without =
      *node.CreateAs("without", kBurstable, 1000,
                     {{"prefer-isolated-cpus.cri-resource-manager.intel.com", "false"}});
  EXPECT_FALSE(Cpus(node.ExclusiveOf(without)).Intersects(Cpus("10-13,50-53")));
  const ContainerKey shared = *node.Create("shared", kBurstable, 100);
  EXPECT_FALSE(node.PlacementOf(shared).cpus->Intersects(Cpus("10-13,50-53")));
}

TEST(StaticPlusPolicyTest, RequiredIsolatedCpusOrNone) {
  Node node(test::WithIsolated(test::S1Ht(), "2,6"));
  const StringMap required = {{"require-isolated-cpus.resource-policy.nri.io", "true"}};
  const ContainerKey core = *node.CreateAs("core", kGuaranteed, 2000, required);
  EXPECT_EQ(node.ExclusiveOf(core), "2,6");
  const Status refusal = node.CreateAs("more", kGuaranteed, 1000, required).status();
  EXPECT_EQ(refusal.code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(Message(refusal),
            "needs 1 isolated CPU, 0 of 2 free: CPU 0 reserved, CPUs 2,6 held by ns/core/core");
}

TEST(StaticPlusPolicyTest, DecliningIsolatedCpusIsFinal) {
  Node node(test::WithIsolated(test::S1Ht(), "2-3,6-7"));
  const StringMap declines = {{"prefer-isolated-cpus.resource-policy.nri.io", "false"}};
  const Status refusal = node.CreateAs("four", kGuaranteed, 4000, declines).status();
  EXPECT_EQ(refusal.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(Message(refusal)), HasSubstr("3 of 8 free: CPU 0 reserved"));
}

TEST(StaticPlusPolicyTest, TheSharedSetIsNeverEmpty) {
  Node node(test::S1Ht(), "0,4");
  const ContainerKey shared = *node.Create("shared", kBurstable, 100);
  const ContainerKey all = *node.Create("all", kGuaranteed, 6000);
  EXPECT_EQ(node.CpusOf(all), "1-3,5-7");
  EXPECT_EQ(node.CpusOf(shared), "0,4") << "the reserved CPUs step in";
  node.Remove(all);
  EXPECT_EQ(node.CpusOf(shared), "1-3,5-7");

  Node bare(test::S1Ht(), "");
  ASSERT_TRUE(bare.Create("seven", kGuaranteed, 7000).ok());
  const Status refusal = bare.Create("last", kGuaranteed, 1000).status();
  EXPECT_EQ(refusal.code(), StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(Message(refusal)), HasSubstr("taking the last one from shared"));
}

TEST(StaticPlusPolicyTest, ResizingKeepsTheCpus) {
  Node node(test::M80());
  const ContainerKey web = *node.Create("web", kBurstable, 2000);
  const CpuSet two = node.PlacementOf(web).exclusive;
  ASSERT_TRUE(node.Resize(web, 2500).ok());
  EXPECT_EQ(node.PlacementOf(web).exclusive, two) << "a fraction joins";
  EXPECT_TRUE(Cpus("10-39").IsSubsetOf(*node.PlacementOf(web).cpus));
  EXPECT_FALSE(node.PlacementOf(web).cpu_quota.has_value());
  ASSERT_TRUE(node.Resize(web, 4500).ok());
  EXPECT_EQ(node.PlacementOf(web).exclusive.size(), 4);
  EXPECT_TRUE(two.IsSubsetOf(node.PlacementOf(web).exclusive));
  ASSERT_TRUE(node.Resize(web, 500).ok());
  EXPECT_EQ(node.ExclusiveOf(web), "");
  ASSERT_TRUE(node.Resize(web, 1000).ok());
  EXPECT_EQ(node.PlacementOf(web).exclusive.size(), 1);
  const std::string before = node.CpusOf(web);
  EXPECT_EQ(node.Resize(web, 90'000).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(node.CpusOf(web), before);
}

TEST(StaticPlusPolicyTest, AResizeDownIsNotRefusedWhereSharingWillDo) {
  Node node(test::S1Ht(), "0");
  const ContainerKey other = *node.Create("other", kGuaranteed, 5000);
  const ContainerKey found = node.snapshot().Add("found", kBurstable, 6500).key;
  node.Reconcile();
  ASSERT_TRUE(node.PlacementOf(found).exclusive.empty()) << "there is no room for it";
  EXPECT_TRUE(node.Resize(found, 4500).ok());
  EXPECT_THAT(node.PlacementOf(found).reason, HasSubstr("shared for want of room: needs 4"));
  EXPECT_EQ(node.Resize(found, 5000).code(), StatusCode::kResourceExhausted) << "it asks for more";
  EXPECT_TRUE(node.Resize(other, 4000).ok());
  EXPECT_TRUE(node.Resize(other, 2500).ok());
  EXPECT_EQ(node.PlacementOf(other).exclusive.size(), 2);
  EXPECT_GT(node.PlacementOf(other).cpus->size(), 2) << "the half one is shared";
}

TEST(StaticPlusPolicyTest, FullCoresOnlyResizesDownToWholeCores) {
  Node node(test::S1Ht(), "0", "{Options: {full-pcpus-only: true}}");
  const ContainerKey key = *node.Create("c", kGuaranteed, 4000);
  EXPECT_TRUE(node.Resize(key, 2500).ok());
  EXPECT_EQ(node.PlacementOf(key).exclusive.size(), 2);
  EXPECT_EQ(node.Resize(key, 1000).code(), StatusCode::kInvalidArgument)
      << "a new attempt of it would be refused as well";
  EXPECT_TRUE(node.Resize(key, 500).ok());
  EXPECT_TRUE(node.PlacementOf(key).exclusive.empty());
}

TEST(StaticPlusPolicyTest, ARestartMovesNoContainer) {
  Node node(test::M80(), "0,40");
  std::vector<ContainerKey> keys = {
      *node.Create("pure", kBurstable, 4000), *node.Create("mixed", kGuaranteed, 2500),
      *node.Create("other", kBurstable, 1100), *node.Create("shared", kBurstable, 300),
      *node.CreateAs("dns", kBurstable, 100, {}, "kube-system")};
  std::vector<std::string> before;
  before.reserve(keys.size());
  for (const ContainerKey key : keys)
    before.push_back(node.CpusOf(key) + " " + node.ExclusiveOf(key));
  node.RestartPolicy();
  EXPECT_TRUE(node.Reconcile().changes.empty()) << "what was stored is what is";
  node.ForgetDecisions();
  node.Reconcile();
  for (size_t i = 0; i < keys.size(); ++i)
    EXPECT_EQ(node.CpusOf(keys[i]) + " " + node.ExclusiveOf(keys[i]), before[i]);
  EXPECT_TRUE(node.Reconcile().changes.empty());
}

TEST(StaticPlusPolicyTest, ARestartMovesNoContainerWithoutSharedOnes) {
  Node node(test::S1Ht());
  const ContainerKey a = *node.Create("a", kBurstable, 1500);
  const ContainerKey alone = *node.Create("alone", kBurstable, 2000);
  const std::string cpus_of_a = node.CpusOf(a);
  node.ForgetDecisions();
  node.Reconcile();
  EXPECT_EQ(node.CpusOf(a), cpus_of_a) << "which one of them is its own cannot be known";
  EXPECT_EQ(node.PlacementOf(a).exclusive.size(), 1);
  EXPECT_EQ(node.ExclusiveOf(alone), node.CpusOf(alone));
}

TEST(StaticPlusPolicyTest, AContainerWithFewerCpusThanItAsksForGetsMoreByARebalanceOnly) {
  Node node(test::S1Ht(), "0");
  const ContainerKey other = *node.Create("other", kGuaranteed, 4000);
  Container& few = node.snapshot().Add("few", kBurstable, 3500);
  const CpuSet two{(Cpus("1-7") - node.PlacementOf(other).exclusive).First()};
  few.placement.exclusive = two;
  few.placement.cpus = Cpus("1-7") - node.PlacementOf(other).exclusive;
  Container& one = node.snapshot().Add("one", kGuaranteed, 1000);
  one.placement.exclusive = CpuSet{(*few.placement.cpus - two).First()};
  one.placement.cpus = one.placement.exclusive;
  const CpuSet last = *few.placement.cpus - two - one.placement.exclusive;
  Container& next = node.snapshot().Add("next", kGuaranteed, 1000);
  next.placement.cpus = next.placement.exclusive = last;
  node.Reconcile();
  ASSERT_EQ(node.PlacementOf(few.key).exclusive, two) << "there are no more";
  node.Remove(other);
  for (int i = 0; i < 2; ++i) {
    EXPECT_TRUE(node.Reconcile().empty());
    node.RestartPolicy();
    EXPECT_TRUE(node.Reconcile().empty());
  }
  EXPECT_TRUE(node.Resize(few.key, 3500).ok());
  EXPECT_EQ(node.PlacementOf(few.key).exclusive.size(), 3) << "its own update";
}

TEST(StaticPlusPolicyTest, AChangeThatReachedOnlySomeContainersContinues) {
  // The runtime still shows the first one on the CPUs that the second one should get.
  Node node(test::S1Ht());
  Container& first = node.snapshot().Add("first", kBurstable, 1500);
  first.placement.cpus = Cpus("1-7");
  Container& second = node.snapshot().Add("second", kBurstable, 1500);
  second.placement.cpus = Cpus("2-7");
  node.Reconcile();
  EXPECT_EQ(node.ExclusiveOf(first.key), "1");
  EXPECT_EQ(node.CpusOf(second.key), "2-7") << "the later one stays where it is";
  EXPECT_EQ(node.PlacementOf(second.key).exclusive.size(), 1);
}

// If it were taken for exclusive, the last shared CPU would cost another container one of its CPUs.
TEST(StaticPlusPolicyTest, TheOnlyUserOfTheLastSharedCpuStillShares) {
  Node node(test::S1Ht());
  const ContainerKey lacking = node.snapshot().Add("lacking", kGuaranteed, 2000).key;
  const ContainerKey own = *node.Create("own", kGuaranteed, 6000);
  const std::string cpus = node.ExclusiveOf(own);
  const CpuSet rest = Cpus("1-7") - Cpus(cpus);
  ASSERT_EQ(rest.size(), 1);
  Placement& placement = node.snapshot().At(lacking).placement;
  placement.cpus = rest;
  placement.pool = "shared";
  node.Reconcile();
  EXPECT_EQ(node.ExclusiveOf(own), cpus);
  EXPECT_EQ(node.ExclusiveOf(lacking), "");
  EXPECT_EQ(node.CpusOf(lacking), rest.ToString());
}

TEST(StaticPlusPolicyTest, AContainerThatSharesForWantOfIsolatedCpusTakesNoOrdinaryOnes) {
  Node node(test::WithIsolated(test::S1Ht(), "2,6"));
  const StringMap required = {{"require-isolated-cpus.resource-policy.nri.io", "true"}};
  ASSERT_TRUE(node.CreateAs("isolated", kGuaranteed, 2000, required).ok());
  ASSERT_TRUE(node.Create("own", kGuaranteed, 2000).ok());
  const ContainerKey shared = *node.Create("shared", kBurstable, 500);
  ASSERT_EQ(node.CpusOf(shared), "3-4,7");
  // It was started under another policy, and shares exactly as many CPUs as it requests.
  Container& lacking = node.snapshot().Add("lacking", kGuaranteed, 3000);
  node.snapshot().PodOf(lacking.key).annotations = required;
  lacking.placement.cpus = Cpus("3-4,7");
  node.Reconcile();
  EXPECT_EQ(node.ExclusiveOf(lacking.key), "");
  EXPECT_EQ(node.CpusOf(lacking.key), "3-4,7");
  EXPECT_EQ(node.CpusOf(shared), "3-4,7") << "no container is moved";
  // The fraction comes from shared CPUs.
  lacking.requirements.cpu_request = MilliCpu{1500};
  node.Reconcile();
  EXPECT_EQ(node.ExclusiveOf(lacking.key), "");
  EXPECT_EQ(node.CpusOf(shared), "3-4,7");
}

TEST(StaticPlusPolicyTest, CpusThatAContainerLeftGoToItsPod) {
  Node node(test::M80());
  ASSERT_TRUE(node.Create("other", kBurstable, 2000).ok());
  const ContainerKey init = *node.Create("init", kBurstable, 4000);
  const CpuSet had = node.PlacementOf(init).exclusive;
  const Pod pod = node.snapshot().PodOf(init);
  node.Remove(init);
  const ContainerKey stranger = *node.Create("stranger", kBurstable, 1000);
  node.Remove(stranger);
  const ContainerKey a = *node.CreateIn(pod, "a", 2000);
  const ContainerKey b = *node.CreateIn(pod, "b", 2000);
  EXPECT_EQ(node.PlacementOf(a).exclusive | node.PlacementOf(b).exclusive, had);
  EXPECT_THAT(node.PlacementOf(a).reason, HasSubstr("CPUs that a container of the pod left"));
}

TEST(StaticPlusPolicyTest, ExplainsWhatWasConsidered) {
  Node node(test::WithIsolated(test::S1Ht(), "2,6"));
  const ContainerKey three = *node.Create("three", kBurstable, 3000);
  EXPECT_THAT(node.policy().Explain(three),
              ElementsAre("isolated CPUs: 2 free, too few", "ordinary CPUs: 5 free, taken"));
  EXPECT_TRUE(node.policy().Explain(*node.Create("shared", kBurstable, 10)).empty());
}

TEST(StaticPlusPolicyTest, ZonesShowWhatIsGranted) {
  Node node(test::WithIsolated(test::S1Ht(), "3,7"), "0");
  ASSERT_TRUE(node.Create("isolated", kBurstable, 1000).ok());
  ASSERT_TRUE(node.Create("three", kBurstable, 3500).ok());
  ASSERT_TRUE(node.Create("shared", kBurstable, 300).ok());
  ASSERT_TRUE(node.CreateAs("dns", kBurstable, 200, {}, "kube-system").ok());
  std::vector<std::string> zones;
  for (const Zone& zone : node.policy().Zones(node.snapshot())) {
    zones.push_back(fmt::format("{} {}/{} {} {}m", zone.name, zone.cpus.ToString(),
                                zone.exclusive.ToString(), zone.containers,
                                zone.shared_request.value));
  }
  EXPECT_THAT(zones, ElementsAre("shared 2,6/ 1 800m", "exclusive 1,4-5/1,4-5 1 0m",
                                 "isolated 3,7/3 1 0m", "reserved 0/ 1 200m"));
}

TEST(StaticPlusPolicyTest, RefusesWrongConfigurations) {
  EXPECT_THAT(std::string(Message(CreateError("0", "{Options: {full-cpus: true}}"))),
              HasSubstr("test.yaml:1"));
  EXPECT_EQ(CreateError("0", "{ExclusiveCPUs: sometimes}").code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(CreateError("0", "{Options: {strict-cpu-reservation: true}}").code(),
            StatusCode::kInvalidArgument);
  EXPECT_TRUE(CreateError("0-7", "").ok()) << "everything runs on the reserved CPUs then";
  EXPECT_TRUE(
      CreateError("0", "{PreferIsolatedCPUs: false, Options: {full-pcpus-only: true}}").ok());
}

}  // namespace
}  // namespace resmgr
