// SPDX-License-Identifier: Apache-2.0
#include "pkg/state/saved_container.h"

#include <limits>
#include <string>

#include <gtest/gtest.h>

#include "pkg/state/saved_claim.h"
#include "test/support/status_matchers.h"

namespace resmgr {
namespace {

using test::Must;

std::string Encoded(const Container& container) {
  std::string bytes;
  EncodeSaved(container, QosClass::kBurstable, bytes);
  return bytes;
}

TEST(SavedContainerTest, ReadsBackWhatItWrote) {
  Container container;
  Placement& placement = container.placement;
  placement.cpus = CpuSet{2, 3, 4};
  placement.exclusive = CpuSet{2, 3};
  placement.counted_mems = NodeSet{0, 5};
  placement.cpu_quota = -1;
  placement.cpu_shares = 2;
  placement.cpu_period = 100'000;
  placement.pool = "exclusive";
  placement.reason = "Guaranteed pod with 2 whole CPUs \"of its own\"";
  container.requested.cpu_shares = 2048;
  container.requested.cpu_quota = -1;
  container.requested.cpu_period = 0;
  container.requested.memory_limit = std::numeric_limits<int64_t>::max();
  container.requested.oom_score_adj = -997;
  container.requested.cpuset_cpus = "";
  container.requested.cpuset_mems = std::string(300, '1');
  container.requested.hugepage_limits["2MB"] = 1 << 21;
  container.requested.hugepage_limits["1GB"] = 0;
  container.requirements = {.cpu_request = MilliCpu{2000},
                            .cpu_limit = MilliCpu{3000},
                            .memory_request = Bytes{1},
                            .memory_limit = Bytes{1 << 30},
                            .memory_estimated = true,
                            .cpu_of_pod = true,
                            .memory_of_pod = true};
  container.needs_note = "the request counts";
  container.cpus_bound = true;
  container.mems_bound = true;
  container.set_later = {.cpu_shares = 512, .cpu_quota = -1, .cpu_period = 0, .reported = true};
  container.hints.push_back({.source = "device /dev/nvme0n1", .cpus = CpuSet{0, 1}, .nodes = {}});
  container.hints.push_back({.source = "mount /data", .cpus = {}, .nodes = NodeSet{3}});
  const SavedContainer read = Must(DecodeSaved(Encoded(container)));
  Placement kept = placement;
  kept.cpus.reset();
  EXPECT_TRUE(read.placement.SameDecision(kept));
  EXPECT_EQ(read.requested, container.requested);
  EXPECT_EQ(read.requirements, container.requirements);
  EXPECT_EQ(read.needs_note, container.needs_note);
  EXPECT_EQ(read.hints, container.hints);
  EXPECT_EQ(read.set_later, container.set_later);
  EXPECT_FALSE(read.asked);
  EXPECT_TRUE(read.cpus_bound);
  EXPECT_TRUE(read.mems_bound);
  EXPECT_EQ(read.qos, QosClass::kBurstable);
}

TEST(SavedContainerTest, WhereItRunsIsNotSaved) {
  Container container;
  container.placement.exclusive = CpuSet{1};
  container.requested.cpu_shares = 1024;
  const std::string saved = Encoded(container);
  container.placement.cpus = CpuSet{1, 2};
  EXPECT_EQ(Encoded(container), saved);
  container.requested.cpu_shares = 2048;
  EXPECT_NE(Encoded(container), saved);
}

// The container's shared CPUs could be taken for exclusive ones.
TEST(SavedContainerTest, CpusThatItSharesAreSavedWhereTheyAreAsManyAsItAsksFor) {
  Container container;
  container.requirements.cpu_request = MilliCpu{2000};
  const auto shared = [&container](const CpuSet& cpus, const CpuSet& exclusive) {
    container.placement.cpus = cpus;
    container.placement.exclusive = exclusive;
    return DecodeSaved(Encoded(container))->shared_cpus.ToString();
  };
  EXPECT_EQ(shared({2, 3}, {}), "2-3");
  EXPECT_EQ(shared({2, 3}, {2}), "2-3");
  EXPECT_EQ(shared({2, 3}, {2, 3}), "");
  EXPECT_EQ(shared({2, 3, 4}, {}), "");
  EXPECT_EQ(shared({}, {}), "");
}

TEST(SavedContainerTest, KeepsWhatListsOfItsRuntimeTell) {
  Pod pod;
  pod.id = PodSandboxId("sandbox");
  pod.uid = PodUid("uid");
  pod.name = "app";
  pod.namespace_name = "ns";
  pod.runtime_handler = "kata";
  pod.overhead.cpu_shares = 256;
  pod.annotations = {{"prefer-isolated-cpus.resource-policy.nri.io/pod", "true"},
                     {"cri-resource-manager.intel.com/affinity", "web: [db]"},
                     {"kubectl.kubernetes.io/last-applied-configuration", "{...}"},
                     {"intel.com/resources", "{}"},
                     {"cpu-shared.crio.io/web", "enable"},
                     {"rdt.resources.beta.kubernetes.io/pod", "gold"},
                     {"class.memory-qos.nri.io", "silver"}};
  pod.labels = {{"app", "llm"}, {"tier", ""}};
  Container container;
  container.name = "web";
  container.attempt = 3;
  container.labels = {{"role", "db"}};
  container.placement.cpus = CpuSet{0, 5};
  container.placement.mems = NodeSet{1};
  const OriginView view{.runtime = "vm", .pod = pod};
  std::string bytes;
  EncodeSaved(container, QosClass::kBurstable, bytes, {.origin = &view});
  const SavedContainer read = Must(DecodeSaved(bytes));
  ASSERT_TRUE(read.origin.has_value());
  const SavedOrigin& origin = *read.origin;
  EXPECT_EQ(origin.runtime, "vm");
  EXPECT_EQ(origin.pod.id, pod.id);
  EXPECT_EQ(origin.pod.uid, pod.uid);
  EXPECT_EQ(origin.pod.name, "app");
  EXPECT_EQ(origin.pod.namespace_name, "ns");
  EXPECT_EQ(origin.pod.runtime_handler, "kata");
  EXPECT_EQ(origin.pod.qos, QosClass::kBurstable);
  EXPECT_EQ(origin.pod.overhead, pod.overhead);
  EXPECT_EQ(origin.pod.annotations.size(), 6U) << "those that nothing reads are not kept";
  EXPECT_EQ(origin.pod.labels, pod.labels);
  EXPECT_EQ(origin.container_labels, container.labels);
  EXPECT_EQ(origin.container_name, "web");
  EXPECT_EQ(origin.attempt, 3U);
  EXPECT_EQ(origin.cpus, container.placement.cpus);
  EXPECT_EQ(origin.mems, container.placement.mems);
}

TEST(SavedContainerTest, KeepsWhatTheClientAsksFor) {
  LinuxResources requested;
  requested.cpu_shares = 2048;
  Requirements requirements;
  requirements.cpu_request = MilliCpu{2000};
  Placement placement;
  placement.cpus = {1, 2};
  placement.exclusive = {1};
  placement.cpu_quota = -1;
  placement.counted_mems = {0};
  placement.pool = "shared";
  placement.reason = "it asks for it";
  const AskedView asked{requested, requirements, placement};
  const AskedTexts texts = {.labels = {{"team", "blue"}, {"role", std::nullopt}},
                            .annotations = {{"key.resource-policy.nri.io", ""}}};
  std::string bytes;
  EncodeSaved(Container(), QosClass::kBurstable, bytes,
              {.asked = &asked, .texts = &texts, .qos_derived = true, .created_name = "first"});
  const SavedContainer read = Must(DecodeSaved(bytes));
  ASSERT_TRUE(read.asked);
  EXPECT_EQ(read.asked->requested, requested);
  EXPECT_EQ(read.asked->requirements, requirements);
  EXPECT_EQ(read.asked->place.shared_cpus, placement.cpus);
  placement.cpus.reset();
  EXPECT_TRUE(read.asked->place.placement.SameDecision(placement));
  EXPECT_EQ(read.texts, texts);
  EXPECT_TRUE(read.qos_derived);
  EXPECT_EQ(read.created_name, "first");
  StringMap labels = {{"team", "a hook's"}, {"role", "a hook's"}, {"tier", "front"}};
  StringMap annotations;
  read.texts.Restore(labels, annotations);
  EXPECT_EQ(labels, StringMap({{"team", "blue"}, {"tier", "front"}}));
  EXPECT_EQ(annotations, StringMap({{"key.resource-policy.nri.io", ""}}));
}

TEST(SavedContainerTest, KeepsWhatTheClientAskedForOfAPod) {
  Pod asked;
  asked.qos = QosClass::kGuaranteed;
  asked.cgroup_parent = "/kubepods/pod1";
  Pod reported;
  reported.cgroup_parent = "/elsewhere";
  reported.qos_derived = true;
  reported.labels.Set("team", "a hook's");
  const std::string bytes = EncodeAsked(asked, {.labels = {{"team", std::nullopt}}});
  ASSERT_TRUE(RestoreAsked(bytes, reported).ok());
  EXPECT_EQ(reported.qos, QosClass::kGuaranteed);
  EXPECT_FALSE(reported.qos_derived);
  EXPECT_EQ(reported.cgroup_parent, asked.cgroup_parent);
  EXPECT_TRUE(reported.labels.empty());
  asked.qos_derived = true;
  ASSERT_TRUE(RestoreAsked(EncodeAsked(asked, {}), reported).ok());
  EXPECT_TRUE(reported.qos_derived);
  EXPECT_FALSE(RestoreAsked("no message", reported).ok());
}

TEST(SavedContainerTest, KeepsTextThatIsNoUtf8) {
  Container container;
  container.placement.reason = "\xff\xfe";
  const SavedContainer read = Must(DecodeSaved(Encoded(container)));
  EXPECT_EQ(read.placement.reason, "\xff\xfe");
}

TEST(SavedContainerTest, RefusesWhatIsNotOne) {
  EXPECT_FALSE(DecodeSaved("").ok());
  EXPECT_FALSE(DecodeSaved("{}").ok());
  EXPECT_FALSE(DecodeSaved("null").ok());
  EXPECT_FALSE(DecodeSaved(std::string_view("\x0a\x00\x12\x00", 4)).ok()) << "without a QoS class";
  const std::string whole = Encoded(Container());
  EXPECT_TRUE(DecodeSaved(whole).ok());
  EXPECT_FALSE(DecodeSaved(whole.substr(0, whole.size() - 1)).ok());
  EXPECT_FALSE(DecodeSaved(whole + "\x1a\x01x").ok()) << "exclusive CPUs that are no list";
}

SavedClaim Whole() {
  SavedClaim saved;
  saved.claim = {.uid = "u1",
                 .namespace_name = "default",
                 .name = "fast",
                 .parts = {{.request = "cpus", .device = "cpu-numa-1", .node = 1, .cpus = 2},
                           {.request = "more", .device = "cpu-l3-8", .cpus = 1, .l3_of = 8}},
                 .options = {.whole_cores = true,
                             .share_within_pod = true,
                             .core_type = CoreKind::kEfficient,
                             .l3 = true,
                             .avoid_siblings = true},
                 .pods = {"pod-1", "pod-2"},
                 .driver = "cpu.example.com",
                 .pools = {"worker-1", "worker-1"},
                 .pod_claim = "cpus"};
  Placement& first = saved.places.emplace_back();
  first.exclusive = {4, 5};
  first.cpus = CpuSet{4};  // one thread of the core
  first.mems = NodeSet{1};
  first.pool = "exclusive";
  first.reason = "2 CPUs";
  Placement& second = saved.places.emplace_back();
  second.exclusive = {2};
  second.cpus = second.exclusive;
  second.counted_mems = NodeSet{0};
  saved.number = 7;
  saved.carriers = {{.pod = "sandbox-1", .container = "main", .attempt = 3}, {.pod = "sandbox-2"}};
  return saved;
}

TEST(SavedClaimTest, AllOfAClaimComesBack) {
  const SavedClaim saved = Whole();
  const SavedClaim again = Must(DecodeClaim("u1", EncodeClaim(saved)));
  EXPECT_EQ(again.claim, saved.claim);
  EXPECT_EQ(again.number, saved.number);
  EXPECT_EQ(again.carriers, saved.carriers);
  ASSERT_EQ(again.places.size(), 2U);
  for (size_t part = 0; part < saved.places.size(); ++part)
    EXPECT_TRUE(again.places[part].SameDecision(saved.places[part])) << part;
}

TEST(SavedClaimTest, DamagedBytesAreRefusedOrAnotherClaim) {
  const std::string whole = EncodeClaim(Whole());
  EXPECT_FALSE(DecodeClaim("u1", "").ok()) << "it has no parts";
  EXPECT_FALSE(DecodeClaim("u1", whole + "\xff").ok());
  for (size_t size = 0; size < whole.size(); ++size) {
    const StatusOr<SavedClaim> part = DecodeClaim("u1", std::string_view(whole).substr(0, size));
    if (part.ok()) EXPECT_EQ(part->places.size(), part->claim.parts.size());
  }
}

}  // namespace
}  // namespace resmgr
