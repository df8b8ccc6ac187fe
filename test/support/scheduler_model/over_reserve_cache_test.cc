// SPDX-License-Identifier: Apache-2.0
// Rows of the description of the cache "over-reserve" of NodeResourceTopologyMatch.
#include "test/support/scheduler_model/over_reserve_cache.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/support/scheduler_model/topology_samples.h"

namespace resmgr::test {
namespace {

using nlohmann::json;

constexpr char kExclusiveMethod[] = "with-exclusive-resources";
const PodKey kFirst{"default", "pod0"};

PodView PodOfCpus(const std::string& cpu, PodQos qos = PodQos::kGuaranteed) {
  return SamplePod(qos, {SampleApp({{"cpu", cpu}})});
}

// Zones with so many CPUs available, about these pods.
json ObjectOf(const std::vector<int>& cpus, const std::vector<PodKey>& pods,
              const std::string& method = kExclusiveMethod) {
  std::vector<json> zones;
  zones.reserve(cpus.size());
  for (const int available : cpus)
    zones.push_back({{"cpu", std::to_string(available)}});
  json object = SampleTopology("single-numa-node", "pod", zones);
  object["attributes"].push_back(
      {{"name", "nodeTopologyPodsFingerprint"}, {"value", SchedulerFingerprint(pods)}});
  object["attributes"].push_back(
      {{"name", "nodeTopologyPodsFingerprintMethod"}, {"value", method}});
  return object;
}

class OverReserveCacheTest : public testing::Test {
 protected:
  FilterVerdict Verdict(const PodView& pod) { return cache_.Filter(pod).verdict; }
  bool Passes(const PodView& pod) { return Verdict(pod) == FilterVerdict::kPasses; }
  // The first pod, bound to the node and started.
  void RunFirst() {
    cache_.Reserve(kFirst, PodOfCpus("3"));
    cache_.PodSeen(kFirst, PodOfCpus("3"), PodPhase::kRunning);
  }

  OverReserveCache cache_{ObjectOf({4, 6}, {}), ResourcesOf({{"cpu", "16"}})};
};

// The values are those of the tests of podfingerprint.
TEST(SchedulerFingerprintTest, HasTheValuesOfTheOriginal) {
  EXPECT_EQ(SchedulerFingerprint({}), "pfp0v001ef46db3751d8e999");
  EXPECT_EQ(SchedulerFingerprint({{"default", "pod0"}}), "pfp0v00110399bf9eea6fbd3");
  EXPECT_EQ(SchedulerFingerprint({{"production", "nginx-rt684"},
                                  {"production", "jaeger-dpgjk"},
                                  {"production", "envoy-g9m22"}}),
            "pfp0v001607b76a0e9d3aeb4");
}

TEST_F(OverReserveCacheTest, AReservationIsSubtractedFromEachZone) {
  EXPECT_TRUE(Passes(PodOfCpus("6")));
  cache_.Reserve(kFirst, PodOfCpus("3"));
  EXPECT_TRUE(Passes(PodOfCpus("3")));
  EXPECT_FALSE(cache_.dirty());
  EXPECT_FALSE(Passes(PodOfCpus("4"))) << "one zone has 1, the other 3";
  EXPECT_TRUE(cache_.dirty());
}

TEST_F(OverReserveCacheTest, ADirtyNodeGetsAnObjectOfItsPods) {
  RunFirst();
  EXPECT_FALSE(Passes(PodOfCpus("4")));
  cache_.ObjectSeen(ObjectOf({1, 6}, {kFirst}));
  EXPECT_FALSE(Passes(PodOfCpus("4"))) << "before the next look";
  cache_.Resync();
  EXPECT_TRUE(Passes(PodOfCpus("6")));
  EXPECT_FALSE(cache_.dirty());
}

TEST_F(OverReserveCacheTest, AnObjectOfOtherPodsIsNotTaken) {
  RunFirst();
  EXPECT_FALSE(Passes(PodOfCpus("4")));
  for (const json& stale :
       {ObjectOf({8, 8}, {}), ObjectOf({8, 8}, {kFirst, {"default", "other"}}),
        ObjectOf({8, 8}, {{"other", "pod0"}}), SampleTopology("single-numa-node", "pod", {})}) {
    cache_.ObjectSeen(stale);
    cache_.Resync();
    EXPECT_FALSE(Passes(PodOfCpus("4"))) << stale;
    EXPECT_TRUE(cache_.dirty());
  }
}

TEST_F(OverReserveCacheTest, ANodeThatIsNotDirtyIsNotLookedAt) {
  RunFirst();
  cache_.ObjectSeen(ObjectOf({8, 8}, {kFirst}));
  cache_.Resync();
  EXPECT_EQ(cache_.Topology().zones.at(1).available.at("cpu"), ExactQuantity(3));
}

TEST_F(OverReserveCacheTest, AForeignPodMakesTheNodeStaleUntilTheObjectHasIt) {
  const PodKey foreign{"kube-system", "agent"};
  cache_.PodSeen(foreign, PodOfCpus("1"), PodPhase::kRunning);
  EXPECT_FALSE(cache_.fresh());
  EXPECT_EQ(cache_.Filter(PodOfCpus("1")).reason, "invalid node topology data");
  EXPECT_FALSE(cache_.dirty());
  cache_.Resync();
  EXPECT_FALSE(cache_.fresh()) << "the object is about no pod";
  cache_.ObjectSeen(ObjectOf({3, 6}, {foreign}));
  cache_.Resync();
  EXPECT_TRUE(cache_.fresh());
}

TEST_F(OverReserveCacheTest, CountsPodsThatHaveStartedAndHaveSomethingForThemselves) {
  const std::string none = SchedulerFingerprint({});
  cache_.PodSeen({"a", "pending"}, PodOfCpus("1"), PodPhase::kPending);
  cache_.PodSeen({"a", "shared"}, PodOfCpus("1", PodQos::kBurstable), PodPhase::kRunning);
  cache_.PodSeen({"a", "fraction"}, PodOfCpus("1500m"), PodPhase::kRunning);
  PodView init = SamplePod(PodQos::kGuaranteed,
                           {SampleContainer(SchedulerContainerKind::kInit, {{"cpu", "1"}})});
  cache_.PodSeen({"a", "init"}, init, PodPhase::kRunning);
  cache_.PodSeen({"a", "device"},
                 SamplePod(PodQos::kBestEffort, {SampleApp({{"example.com/nic", "1"}})}),
                 PodPhase::kRunning);
  EXPECT_EQ(cache_.Fingerprint(), none) << "no zone lists the device";
  cache_.PodSeen({"a", "ended"}, PodOfCpus("1"), PodPhase::kSucceeded);
  EXPECT_EQ(cache_.Fingerprint(), SchedulerFingerprint({{"a", "ended"}}));
  cache_.PodGone({"a", "ended"});
  EXPECT_EQ(cache_.Fingerprint(), none);
  cache_.ObjectSeen(ObjectOf({4, 6}, {}, "all"));
  EXPECT_EQ(
      cache_.Fingerprint(),
      SchedulerFingerprint({{"a", "shared"}, {"a", "fraction"}, {"a", "init"}, {"a", "device"}}));
}

}  // namespace
}  // namespace resmgr::test
