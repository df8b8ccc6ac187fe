// SPDX-License-Identifier: Apache-2.0
#include "pkg/simulator/scenario.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/api/runtime_v1.pb.h"
#include "pkg/config/yaml_reader.h"
#include "pkg/dump/dump_fixture.h"
#include "pkg/sys/files.h"
#include "test/support/status_matchers.h"

namespace resmgr {
namespace {

using test::Must;
using ::testing::HasSubstr;

std::string ScenarioError(const std::string& text) {
  const auto scenario = ReadScenario(text, "s.yaml");
  EXPECT_EQ(scenario.status().code(), StatusCode::kInvalidArgument) << text;
  return std::string(Message(scenario.status()));
}

TEST(ScenarioTest, ReadsPodsAndControlDocuments) {
  const auto scenario = Must(ReadScenario(R"(# a comment
---
kind: Pod
metadata: {name: p}
spec: {containers: [{name: c}]}
---
delete: shop/server
---
delete: shop/server/main
---
resize: {pod: default/p, container: c, resources: {limits: {cpu: 3}}}
---
restart: relay
---
config: {policy: {Active: static}}
---
)",
                                          "s.yaml"));
  ASSERT_EQ(scenario.size(), 6u);
  EXPECT_EQ(std::get<Manifest>(scenario[0].action).name, "p");
  EXPECT_EQ(scenario[0].where, "s.yaml:3");
  EXPECT_EQ(std::get<DeleteStep>(scenario[1].action).target.container, "");
  const Target target = std::get<DeleteStep>(scenario[2].action).target;
  EXPECT_EQ(target.PodName(), "shop/server");
  EXPECT_EQ(target.container, "main");
  const auto& resize = std::get<ResizeStep>(scenario[3].action);
  EXPECT_EQ(resize.target.PodName(), "default/p");
  EXPECT_EQ(resize.target.container, "c");
  EXPECT_EQ(resize.change.cpu_limit, MilliCpu{3000});
  EXPECT_TRUE(std::holds_alternative<RestartStep>(scenario[4].action));
  EXPECT_EQ(std::get<ConfigStep>(scenario[5].action).config.entries.size(), 1u);
}

TEST(ScenarioTest, ReadsWhatContainersUse) {
  const auto scenario =
      Must(ReadScenario("use: {shop/web: 1500m, shop/db/main: {cpus: 0.5, pressure: 50}}\n---\n"
                        "rebalance: {by: use, apply: true, moves: 3}\n---\nrebalance: {by: use}\n",
                        "s.yaml"));
  const auto& use = std::get<UseStep>(scenario[0].action);
  ASSERT_EQ(use.entries.size(), 2u);
  EXPECT_EQ(use.entries[0].target.PodName(), "shop/web");
  EXPECT_DOUBLE_EQ(use.entries[0].wanted, 1.5);
  EXPECT_EQ(use.entries[1].target.container, "main");
  EXPECT_DOUBLE_EQ(use.entries[1].wanted, 1) << "it waited for as much";
  const auto& apply = std::get<RebalanceStep>(scenario[1].action);
  EXPECT_TRUE(apply.apply && apply.by_use);
  EXPECT_EQ(apply.moves, 3);
  const auto& preview = std::get<RebalanceStep>(scenario[2].action);
  EXPECT_TRUE(preview.by_use && !preview.apply && !preview.moves);
}

TEST(ScenarioTest, WrongUseHasItsPlace) {
  EXPECT_THAT(ScenarioError("use: 1"), HasSubstr("s.yaml:1: use: must be a map of containers"));
  EXPECT_THAT(ScenarioError("use: {web: 1}"), HasSubstr("must be NAMESPACE/POD[/CONTAINER]"));
  for (const std::string wrong :
       {"-1", "x", "[1]", "{cpus: -1}", "{pressure: 101}", "{pressure: -1}", "{memory: 1}"})
    EXPECT_THAT(ScenarioError("use: {shop/web: " + wrong + "}"), HasSubstr("use.shop/web"));
  for (const std::string wrong : {"{by: chance}", "{moves: 101}", "{when: now}", "[]"})
    EXPECT_THAT(ScenarioError("rebalance: " + wrong), HasSubstr("s.yaml:1: rebalance"));
}

TEST(ScenarioTest, AnEmptyTextHasNoSteps) {
  EXPECT_EQ(ReadScenario("", "s.yaml")->size(), 0u);
}

TEST(ScenarioTest, ErrorsHaveTheirPlace) {
  const std::string pod = "kind: Pod\nmetadata: {name: p}\nspec: {containers: [{name: c}]}\n---\n";
  EXPECT_THAT(ScenarioError(pod + "a: [\n"), HasSubstr("s.yaml:"));
  EXPECT_THAT(ScenarioError(pod + "kind: Deployment\n"),
              HasSubstr("s.yaml:5: metadata.name: a Deployment needs a name"));
  EXPECT_THAT(ScenarioError(pod + "metadata: {name: p}\nspec: {}\n"),
              HasSubstr("s.yaml:5: kind: is missing; a Pod has \"kind: Pod\""));
  EXPECT_THAT(ScenarioError(pod + "remove: a/b\n"),
              HasSubstr("s.yaml:5: remove: a document is a Pod"));
  EXPECT_THAT(ScenarioError(pod + "3\n"), HasSubstr("s.yaml:5: a document is a Pod"));
  EXPECT_THAT(ScenarioError("delete: a/b\nrestart: relay\n"),
              HasSubstr("s.yaml:1: a document is a Pod"));
  for (const char* target : {"p", "a/b/c/d", "/p", "a/", "a//c", "[a/b]", ""}) {
    EXPECT_THAT(ScenarioError(std::string("delete: ") + target),
                HasSubstr("NAMESPACE/POD[/CONTAINER]"))
        << target;
  }
  EXPECT_THAT(ScenarioError("restart: kubelet"), HasSubstr("only \"relay\" can be restarted"));
  EXPECT_THAT(ScenarioError("config: 3"), HasSubstr("config: must be a map"));
  EXPECT_THAT(ScenarioError("resize: 3"), HasSubstr("resize: must be a map"));
  EXPECT_THAT(ScenarioError("resize: {container: c, resources: {}}"),
              HasSubstr("resize.pod: is missing"));
  EXPECT_THAT(ScenarioError("resize: {pod: a/b, resources: {}}"),
              HasSubstr("resize.container: is missing"));
  EXPECT_THAT(ScenarioError("resize: {pod: a/b/c, container: c, resources: {}}"),
              HasSubstr("must be NAMESPACE/POD"));
  EXPECT_THAT(ScenarioError("resize: {pod: a/b, container: c}"), HasSubstr("resize.resources"));
  EXPECT_THAT(ScenarioError("resize: {pod: a/b, container: c, resources: {}, more: 1}"),
              HasSubstr("resize.more"));
}

TEST(ScenarioTest, IsBounded) {
  EXPECT_THAT(ScenarioError(std::string(kMaxYamlDocumentsSize + 1, ' ')),
              HasSubstr("more than 33554432"));
  std::string many;
  for (size_t i = 0; i < kMaxYamlDocuments; ++i)
    many += "---\nwait: 1s\n";
  EXPECT_THAT(ReadScenario(many, "s.yaml")->size(), kMaxYamlDocuments) << "all pods, and more";
  EXPECT_THAT(ScenarioError(many + "---\nwait: 1s\n"),
              HasSubstr("more than 30000 documents are not allowed"));
}

using Call = RecordedStep::Call;

constexpr std::string_view kHeader =
    R"({"recording":"cri-resmgr","version":1,"start":"2026-03-05T09:10:11Z"})"
    "\n";

StatusOr<Scenario> ReadLines(const std::string& lines) {
  return ReadScenario(std::string(kHeader) + lines, "r.json");
}

TEST(RecordingReaderTest, ReadsTheCallsOfAPod) {
  const auto scenario = Must(ReadLines(
      R"({"t":0.1,"op":"RunPodSandbox","ok":true,"code":0,"latency":0.1,"pod":{"id":"s1","uid":"u1","name":"web","namespace":"shop","cgroup_parent":"/kubepods/burstable/podu1","annotations":{"a":"b"}}}
{"t":0.2,"op":"CreateContainer","ok":true,"code":0,"latency":0.1,"container":{"id":"c1","name":"main","attempt":1,"resources":{"cpu_period":100000,"cpu_quota":50000,"cpu_shares":512,"memory_limit_in_bytes":1048576,"oom_score_adj":900,"hugepage_limits":[{"page_size":"2MB","limit":4}]}},"pod":{"id":"s1","name":"web","namespace":"shop"}}
{"t":0.3,"op":"StartContainer","ok":true,"code":0,"latency":0.1,"container":{"id":"c1"}}
{"t":0.4,"op":"UpdateContainerResources","ok":true,"code":0,"latency":0.1,"container":{"id":"c1","resources":{"cpu_shares":1024}}}
{"t":0.5,"op":"StopContainer","ok":true,"code":0,"latency":0.1,"container":{"id":"c1"}}
{"t":0.6,"op":"RemoveContainer","ok":true,"code":0,"latency":0.1,"container":{"id":"c1"}}
{"t":0.7,"op":"StopPodSandbox","ok":true,"code":0,"latency":0.1,"pod":{"id":"s1"}}
{"t":0.8,"op":"RemovePodSandbox","ok":true,"code":0,"latency":0.1,"pod":{"id":"s1"}}
)"));
  ASSERT_EQ(scenario.size(), 8u);
  std::vector<Call> calls;
  for (const Step& step : scenario)
    calls.push_back(std::get<RecordedStep>(step.action).call);
  EXPECT_THAT(calls,
              testing::ElementsAre(Call::kRunPod, Call::kCreate, Call::kStart, Call::kUpdate,
                                   Call::kStop, Call::kRemove, Call::kStopPod, Call::kRemovePod));
  const Pod& pod = std::get<RecordedStep>(scenario[0].action).pod;
  EXPECT_EQ(pod.qos, QosClass::kBurstable);
  EXPECT_EQ(pod.annotations.find("a")->second, "b");
  const CreateRequest& request = std::get<RecordedStep>(scenario[1].action).request;
  EXPECT_EQ(request.pod_id, PodSandboxId("s1"));
  EXPECT_EQ(request.attempt, 1u);
  EXPECT_TRUE(request.has_resources);
  EXPECT_EQ(request.resources.cpu_quota, 50000);
  EXPECT_EQ(request.resources.memory_limit, 1048576);
  EXPECT_EQ(request.resources.oom_score_adj, 900);
  EXPECT_EQ(request.resources.hugepage_limits.at("2MB"), 4u);
  EXPECT_EQ(scenario[1].where, "r.json:3");
}

TEST(RecordingReaderTest, ReadsWhatContainersUsed) {
  const auto scenario = Must(ReadLines(R"({"t":60.5,"op":"use","use":{"c1":[1.5,40],"c2":[0]}})"
                                       "\n"));
  ASSERT_EQ(scenario.size(), 1u);
  const RecordedUse& use = std::get<RecordedUse>(scenario[0].action);
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
  const auto scenario = Must(ReadLines(
      R"({"lost_calls":3}
{"t":0.1,"op":"StartContainer","ok":false,"code":5,"container":{"id":"c1"}}
{"t":0.1,"op":"CreateContainer","ok":true,"code":0,"undecodable":true}
{"t":0.1,"op":"ListContainers","ok":true,"code":0}
)"));
  EXPECT_EQ(scenario.size(), 0u);
}

TEST(RecordingReaderTest, TellsThatCallsAreMissing) {
  const auto notes_of = [](const std::string& lines) {
    std::vector<std::string> notes;
    EXPECT_TRUE(ReadScenario(std::string(kHeader) + lines, "r.json", &notes).ok());
    return notes;
  };
  const std::string start =
      R"({"t":0.1,"op":"StartContainer","ok":true,"code":0,"container":{"id":"c1"}})";
  EXPECT_THAT(notes_of(start + "\n"), testing::IsEmpty());
  EXPECT_THAT(notes_of(R"({"lost_calls":3})" + std::string("\n") + start +
                       R"(
{"t":0.1,"op":"CreateContainer","ok":true,"code":0,"undecodable":true}
)"),
              testing::ElementsAre(testing::HasSubstr("r.json: the recording lacks 4 calls")));
}

TEST(RecordingReaderTest, ReadsWhatAPodHasAsAWhole) {
  const auto scenario = Must(ReadLines(
      R"({"op":"RunPodSandbox","ok":true,"pod":{"id":"s1","overhead":{"cpu_shares":256},"resources":{"cpu_shares":1024}}}
{"op":"UpdatePodSandboxResources","ok":true,"pod":{"id":"s1","resources":{"cpu_shares":2048}}}
)"));
  ASSERT_EQ(scenario.size(), 2u);
  const Pod& run = std::get<RecordedStep>(scenario[0].action).pod;
  EXPECT_EQ(run.overhead.cpu_shares, 256);
  EXPECT_EQ(run.resources.cpu_shares, 1024);
  const auto& update = std::get<RecordedStep>(scenario[1].action);
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
    const auto scenario = Must(ReadScenario(whole + next.substr(0, size), "r.json"));
    EXPECT_EQ(scenario.size(), 1U);
  }
  EXPECT_EQ(ReadScenario(whole + next, "r.json")->size(), 2U);
}

TEST(RecordingReaderTest, KnowsItsHeader) {
  EXPECT_TRUE(IsRecording(kHeader));
  EXPECT_FALSE(IsRecording("{kind: Pod}\n"));
  EXPECT_FALSE(IsRecording("{\"kind\": \"Pod\"}\n"));
  EXPECT_FALSE(IsRecording(""));
}

// The reader reads recordings as the daemon's dump writes them.

namespace v1 = runtime::v1;

constexpr std::string_view kUpdate = "/runtime.v1.RuntimeService/UpdateContainerResources";

class RecordingReplayTest : public dump::DumpFixture {
 protected:
  std::vector<RecordedStep> Recorded() {
    EXPECT_TRUE(dumper_->Close(std::chrono::seconds(30)));
    const auto text = ReadFile(PathOf("r.jsonl"), kMaxScenarioSize);
    EXPECT_TRUE(text.ok()) << Describe(text.status());
    const auto scenario = ReadScenario(text.value_or(""), "r.jsonl");
    EXPECT_TRUE(scenario.ok()) << Describe(scenario.status());
    std::vector<RecordedStep> steps;
    for (const Step& step : scenario.value_or(Scenario()))
      steps.push_back(std::get<RecordedStep>(step.action));
    return steps;
  }
};

TEST_F(RecordingReplayTest, ReadsWhatTheDumpWrites) {
  ASSERT_TRUE(Start({.specs = {"record:" + PathOf("r.jsonl")}}).ok());
  v1::RunPodSandboxRequest run;
  run.mutable_config()->mutable_metadata()->set_name("web");
  run.mutable_config()->mutable_metadata()->set_namespace_("shop");
  run.mutable_config()->mutable_linux()->set_cgroup_parent("/kubepods/podu1");
  v1::RunPodSandboxResponse pod;
  pod.set_pod_sandbox_id("s1");
  Call(dump::kRun, run, pod);

  v1::CreateContainerRequest create;
  create.set_pod_sandbox_id("s1");
  create.mutable_config()->mutable_metadata()->set_name("main");
  create.mutable_config()->mutable_metadata()->set_attempt(2);
  auto& resources = *create.mutable_config()->mutable_linux()->mutable_resources();
  resources.set_cpu_shares(2048);
  resources.set_cpu_quota(200'000);
  resources.set_cpu_period(100'000);
  resources.set_memory_limit_in_bytes(int64_t{5} << 30);
  resources.set_oom_score_adj(-997);
  auto& pages = *resources.add_hugepage_limits();
  pages.set_page_size("2MB");
  pages.set_limit(uint64_t{1} << 31);
  v1::CreateContainerResponse container;
  container.set_container_id("c1");
  Call(dump::kCreate, create, container);

  v1::UpdateContainerResourcesRequest update;
  update.set_container_id("c1");
  update.mutable_linux()->set_cpu_shares(1024);
  update.mutable_linux()->set_cpuset_cpus("0-3");
  Call(kUpdate, update, v1::UpdateContainerResourcesResponse());
  FailedCall(dump::kStart, v1::StartContainerRequest(), 5, "no such container");

  const std::vector<RecordedStep> steps = Recorded();
  ASSERT_EQ(steps.size(), 3u);
  EXPECT_EQ(steps[0].call, RecordedStep::Call::kRunPod);
  EXPECT_EQ(steps[0].pod.id, PodSandboxId("s1"));
  EXPECT_EQ(steps[0].pod.qos, QosClass::kGuaranteed);
  EXPECT_EQ(steps[1].call, RecordedStep::Call::kCreate);
  EXPECT_EQ(steps[1].container, ContainerId("c1"));
  EXPECT_EQ(steps[1].request.pod_id, PodSandboxId("s1"));
  EXPECT_EQ(steps[1].request.attempt, 2u);
  LinuxResources expected;
  expected.cpu_shares = 2048;
  expected.cpu_quota = 200'000;
  expected.cpu_period = 100'000;
  expected.memory_limit = int64_t{5} << 30;
  expected.oom_score_adj = -997;
  expected.hugepage_limits["2MB"] = uint64_t{1} << 31;
  EXPECT_EQ(steps[1].request.resources, expected);
  EXPECT_EQ(steps[2].call, RecordedStep::Call::kUpdate);
  EXPECT_EQ(steps[2].resources.cpu_shares, 1024);
  EXPECT_EQ(steps[2].resources.cpuset_cpus, "0-3");
}

}  // namespace
}  // namespace resmgr
