// SPDX-License-Identifier: Apache-2.0
#include "pkg/simulator/recording_reader.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace resmgr {
namespace {

using ::testing::HasSubstr;
using Call = RecordedStep::Call;

constexpr std::string_view kHeader =
    R"({"recording":"cri-resmgr","version":1,"start":"2026-03-05T09:10:11Z"})"
    "\n";

StatusOr<Scenario> ReadLines(const std::string& lines) {
  return ReadScenario(std::string(kHeader) + lines, "r.json");
}

TEST(RecordingReaderTest, ReadsTheCallsOfAPod) {
  const auto scenario = ReadLines(
      R"({"t":0.1,"op":"RunPodSandbox","ok":true,"code":0,"latency":0.1,"pod":{"id":"s1","uid":"u1","name":"web","namespace":"shop","cgroup_parent":"/kubepods/burstable/podu1","annotations":{"a":"b"}}}
{"t":0.2,"op":"CreateContainer","ok":true,"code":0,"latency":0.1,"container":{"id":"c1","name":"main","attempt":1,"resources":{"cpu_period":100000,"cpu_quota":50000,"cpu_shares":512,"memory_limit_in_bytes":1048576,"oom_score_adj":900,"hugepage_limits":[{"page_size":"2MB","limit":4}]}},"pod":{"id":"s1","name":"web","namespace":"shop"}}
{"t":0.3,"op":"StartContainer","ok":true,"code":0,"latency":0.1,"container":{"id":"c1"}}
{"t":0.4,"op":"UpdateContainerResources","ok":true,"code":0,"latency":0.1,"container":{"id":"c1","resources":{"cpu_shares":1024}}}
{"t":0.5,"op":"StopContainer","ok":true,"code":0,"latency":0.1,"container":{"id":"c1"}}
{"t":0.6,"op":"RemoveContainer","ok":true,"code":0,"latency":0.1,"container":{"id":"c1"}}
{"t":0.7,"op":"StopPodSandbox","ok":true,"code":0,"latency":0.1,"pod":{"id":"s1"}}
{"t":0.8,"op":"RemovePodSandbox","ok":true,"code":0,"latency":0.1,"pod":{"id":"s1"}}
)");
  ASSERT_TRUE(scenario.ok()) << Describe(scenario.status());
  ASSERT_EQ(scenario->size(), 8u);
  std::vector<Call> calls;
  for (const Step& step : *scenario)
    calls.push_back(std::get<RecordedStep>(step.action).call);
  EXPECT_THAT(calls,
              testing::ElementsAre(Call::kRunPod, Call::kCreate, Call::kStart, Call::kUpdate,
                                   Call::kStop, Call::kRemove, Call::kStopPod, Call::kRemovePod));
  const Pod& pod = std::get<RecordedStep>((*scenario)[0].action).pod;
  EXPECT_EQ(pod.qos, QosClass::kBurstable);
  EXPECT_EQ(pod.annotations.find("a")->second, "b");
  const CreateRequest& request = std::get<RecordedStep>((*scenario)[1].action).request;
  EXPECT_EQ(request.pod_id, PodSandboxId("s1"));
  EXPECT_EQ(request.attempt, 1u);
  EXPECT_TRUE(request.has_resources);
  EXPECT_EQ(request.resources.cpu_quota, 50000);
  EXPECT_EQ(request.resources.memory_limit, 1048576);
  EXPECT_EQ(request.resources.oom_score_adj, 900);
  EXPECT_EQ(request.resources.hugepage_limits.at("2MB"), 4u);
  EXPECT_EQ((*scenario)[1].where, "r.json:3");
}

TEST(RecordingReaderTest, ReadsWhatContainersUsed) {
  const auto scenario = ReadLines(R"({"t":60.5,"op":"use","use":{"c1":[1.5,40],"c2":[0]}})"
                                  "\n");
  ASSERT_TRUE(scenario.ok()) << Describe(scenario.status());
  ASSERT_EQ(scenario->size(), 1u);
  const RecordedUse& use = std::get<RecordedUse>((*scenario)[0].action);
  EXPECT_EQ(use.at, std::chrono::milliseconds(60'500));
  ASSERT_EQ(use.use.size(), 2u);
  EXPECT_EQ(use.use[0].first, ContainerId("c1"));
  EXPECT_EQ(use.use[0].second, (policy::ContainerUse{.cpus = 1.5, .pressure = 40}));
  EXPECT_EQ(use.use[1].second, policy::ContainerUse());
  for (const std::string wrong :
       {R"({"t":-1,"op":"use","use":{}})", R"({"op":"use","use":{}})",
        R"({"t":1e300,"op":"use","use":{}})", R"({"t":1,"op":"use","use":{"c":[]}})",
        R"({"t":1,"op":"use","use":{"c":[-1]}})", R"({"t":1,"op":"use","use":{"c":[1,2,3]}})",
        R"({"t":1,"op":"use","use":{"c":["1"]}})", R"({"t":1,"op":"use","use":{"c":[1e9]}})"})
    EXPECT_FALSE(ReadLines(wrong + "\n").ok()) << wrong;
}

TEST(RecordingReaderTest, LeavesOutWhatHadNoEffectOrCannotBeRead) {
  const auto scenario = ReadLines(
      R"({"lost_calls":3}
{"t":0.1,"op":"StartContainer","ok":false,"code":5,"container":{"id":"c1"}}
{"t":0.1,"op":"CreateContainer","ok":true,"code":0,"undecodable":true}
{"t":0.1,"op":"ListContainers","ok":true,"code":0}
)");
  ASSERT_TRUE(scenario.ok()) << Describe(scenario.status());
  EXPECT_EQ(scenario->size(), 0u);
}

TEST(RecordingReaderTest, ReadsWhatAPodHasAsAWhole) {
  const auto scenario = ReadLines(
      R"({"op":"RunPodSandbox","ok":true,"pod":{"id":"s1","overhead":{"cpu_shares":256},"resources":{"cpu_shares":1024}}}
{"op":"UpdatePodSandboxResources","ok":true,"pod":{"id":"s1","resources":{"cpu_shares":2048}}}
)");
  ASSERT_TRUE(scenario.ok()) << Describe(scenario.status());
  ASSERT_EQ(scenario->size(), 2u);
  const Pod& run = std::get<RecordedStep>((*scenario)[0].action).pod;
  EXPECT_EQ(run.overhead.cpu_shares, 256);
  EXPECT_EQ(run.resources.cpu_shares, 1024);
  const auto& update = std::get<RecordedStep>((*scenario)[1].action);
  EXPECT_EQ(update.call, Call::kUpdatePod);
  EXPECT_EQ(update.pod.overhead, LinuxResources());
  EXPECT_EQ(update.pod.resources.cpu_shares, 2048);
}

TEST(RecordingReaderTest, ErrorsHaveTheirPlace) {
  const auto error = [](const std::string& text) {
    return std::string(Message(ReadScenario(text, "r.json").status()));
  };
  const std::string header(kHeader);
  EXPECT_EQ(error(header + "{\n"), "r.json:2: it is not a JSON object");
  EXPECT_EQ(error(header + "{\n{"), "r.json:2: it is not a JSON object");
  EXPECT_EQ(error(header + "{\n{\n"), "r.json:2: it is not a JSON object");
  EXPECT_EQ(error(header + "\n[]\n"), "r.json:3: it is not a JSON object");
  EXPECT_EQ(error(header + R"({"op":"StartContainer","ok":true})"),
            "r.json:2: the call has no container");
  EXPECT_EQ(error(header + R"({"op":"StartContainer","ok":true,"container":{}})"),
            "r.json:2: the call has no container id");
  EXPECT_EQ(error(header + R"({"op":"RunPodSandbox","ok":true,"pod":{}})"),
            "r.json:2: the call has no pod id");
  EXPECT_THAT(error(R"({"recording":"cri-resmgr","version":2})"), HasSubstr("of version 1"));
}

TEST(RecordingReaderTest, ALastLineThatWasCutIsLeftOut) {
  const std::string whole =
      std::string(kHeader) + R"({"op":"RunPodSandbox","ok":true,"pod":{"id":"s1"}})" + "\n";
  const std::string next = R"({"op":"StopPodSandbox","ok":true,"pod":{"id":"s1"}})";
  for (size_t size = 0; size < next.size(); ++size) {
    const auto scenario = ReadScenario(whole + next.substr(0, size), "r.json");
    ASSERT_TRUE(scenario.ok()) << Describe(scenario.status());
    EXPECT_EQ(scenario->size(), 1U);
  }
  EXPECT_EQ(ReadScenario(whole + next, "r.json")->size(), 2U);
}

TEST(RecordingReaderTest, KnowsItsHeader) {
  EXPECT_TRUE(IsRecording(kHeader));
  EXPECT_FALSE(IsRecording("{kind: Pod}\n"));
  EXPECT_FALSE(IsRecording("{\"kind\": \"Pod\"}\n"));
  EXPECT_FALSE(IsRecording(""));
}

}  // namespace
}  // namespace resmgr
