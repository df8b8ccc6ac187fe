// SPDX-License-Identifier: Apache-2.0
// The reader reads recordings as the daemon's dump writes them.
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/api/runtime_v1.pb.h"
#include "pkg/dump/dump_fixture.h"
#include "pkg/simulator/scenario.h"
#include "pkg/sys/files.h"

namespace resmgr {
namespace {

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
