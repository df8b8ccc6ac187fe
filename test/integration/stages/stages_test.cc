// SPDX-License-Identifier: Apache-2.0
// The runtime receives exactly the changes of a stage behind the policy, and every other byte is
// the client's.
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <google/protobuf/util/message_differencer.h>
#include <gtest/gtest.h>

#include "pkg/pipeline/testing/function_stage.h"
#include "test/integration/stages/annotation_env_stage.h"
#include "test/integration/stages/node_fixture.h"
#include "test/support/cri_client/specs.h"
#include "test/support/status_matchers.h"

namespace resmgr::test {
namespace {

using testing::HasSubstr;

using google::protobuf::util::MessageDifferencer;

constexpr OperationSet kCreate{Operation::kCreateContainer};

// A stage whose adjustment the test writes.
FunctionStage Editing(std::function<void(WideAdjustment&)> edit) {
  return FunctionStage({.name = "edits", .operations = kCreate},
                       [edit = std::move(edit)](auto& call, Request&, const Adjustment&) {
                         Adjustment adjustment;
                         edit(adjustment.Wide());
                         call.Adjust(std::move(adjustment));
                       });
}

// A creation with properties that a rebuilt message would lose: order, duplicates and unknown
// fields.
cri::CreateContainerRequest CreationIn(const std::string& pod_id) {
  cri::CreateContainerRequest request;
  request.set_pod_sandbox_id(pod_id);
  *request.mutable_sandbox_config() = MakeGuaranteedPod("g");
  cri::ContainerConfig& config = *request.mutable_config();
  config = MakeGuaranteedContainer("main", 2);
  for (const char* key : {"Z", "A", "M"}) {
    auto& env = *config.add_envs();
    env.set_key(key);
    env.set_value("old");
  }
  for (const char* path : {"/a/b", "/a", "/c"}) {
    auto& mount = *config.add_mounts();
    mount.set_container_path(path);
    mount.set_host_path("/host");
  }
  (*config.mutable_annotations())["keep"] = "1";
  (*config.mutable_annotations())["drop"] = "1";
  config.GetReflection()->MutableUnknownFields(&config)->AddLengthDelimited(12'345, "future");
  return request;
}

// Clears the fields that the policy may set.
void ClearPlacement(cri::CreateContainerRequest& request) {
  cri::LinuxContainerResources& resources =
      *request.mutable_config()->mutable_linux()->mutable_resources();
  resources.clear_cpuset_cpus();
  resources.clear_cpuset_mems();
  resources.clear_cpu_shares();
  resources.clear_cpu_quota();
  resources.clear_cpu_period();
}

class StagesEditTest : public StagesTest {
 protected:
  // Sends the creation and returns what the runtime got for it, without the policy's fields.
  cri::CreateContainerRequest Create(const cri::CreateContainerRequest& request) {
    CriClient client = Client();
    sent_ = request.SerializeAsString();
    const CallResult result = client.Call(client.PathOf("CreateContainer"), {sent_});
    EXPECT_TRUE(result.status.ok()) << result.status.error_message();
    received_ = Received("CreateContainer");
    cri::CreateContainerRequest seen;
    EXPECT_TRUE(seen.ParseFromString(received_));
    EXPECT_FALSE(seen.config().linux().resources().cpuset_cpus().empty());
    ClearPlacement(seen);
    return seen;
  }

  std::string sent_;
  std::string received_;
};

TEST_F(StagesEditTest, TheRuntimeReceivesWhatAStageSetsAndEveryOtherByte) {
  FunctionStage stage = Editing([](WideAdjustment& wide) {
    wide.environment.Set("REGION", "north");
    wide.mounts.Set("/cache", {.container_path = "/cache", .host_path = "/var/cache"});
    wide.annotations.Set("example.com/by", "stage");
  });
  const NodeRun node(*this, {&stage});
  const std::string pod = Ok(Client().RunPod(MakeGuaranteedPod("g")));
  cri::CreateContainerRequest expected = CreationIn(pod);

  const cri::CreateContainerRequest seen = Create(expected);

  EXPECT_TRUE(received_.starts_with(sent_)) << "the bytes as sent, and only something behind them";
  cri::ContainerConfig& config = *expected.mutable_config();
  auto& env = *config.add_envs();
  env.set_key("REGION");
  env.set_value("north");
  auto& mount = *config.add_mounts();
  mount.set_container_path("/cache");
  mount.set_host_path("/var/cache");
  (*config.mutable_annotations())["example.com/by"] = "stage";
  ClearPlacement(expected);
  EXPECT_TRUE(MessageDifferencer::Equals(seen, expected)) << seen.DebugString();
}

TEST_F(StagesEditTest, WhatAStageReplacesAndRemovesChangesInPlace) {
  FunctionStage stage = Editing([](WideAdjustment& wide) {
    wide.environment.Set("A", "new");
    wide.environment.Remove("Z");
    wide.mounts.Remove("/a");
    wide.annotations.Remove("drop");
  });
  const NodeRun node(*this, {&stage});
  const std::string pod = Ok(Client().RunPod(MakeGuaranteedPod("g")));
  cri::CreateContainerRequest expected = CreationIn(pod);

  const cri::CreateContainerRequest seen = Create(expected);

  cri::ContainerConfig& config = *expected.mutable_config();
  config.mutable_envs()->DeleteSubrange(0, 1);
  config.mutable_envs(0)->set_value("new");
  config.mutable_mounts()->DeleteSubrange(1, 1);
  config.mutable_annotations()->erase("drop");
  ClearPlacement(expected);
  EXPECT_TRUE(MessageDifferencer::Equals(seen, expected)) << seen.DebugString();
}

TEST_F(StagesEditTest, CpusOfALaterStageAreDropped) {
  FunctionStage stage({.name = "pins", .operations = kCreate},
                      [](auto& call, Request&, const Adjustment& so_far) {
                        EXPECT_TRUE(so_far.values.cpus.has_value());
                        call.Adjust(ResourceValues{.cpus = CpuSet{0}, .cpu_shares = 77});
                      });
  const NodeRun node(*this, {&stage});
  const std::string pod = Ok(Client().RunPod(MakeGuaranteedPod("g")));
  Create(CreationIn(pod));
  cri::CreateContainerRequest seen;
  ASSERT_TRUE(seen.ParseFromString(received_));
  EXPECT_EQ(CpuSet::Parse(seen.config().linux().resources().cpuset_cpus())->size(), 2);
  EXPECT_EQ(seen.config().linux().resources().cpu_shares(), 77);
}

TEST_F(StagesEditTest, AnAnnotationBecomesAVariable) {
  example::AnnotationEnvStage stage;
  const NodeRun node(*this, {&stage});
  const std::string pod = Ok(Client().RunPod(MakeGuaranteedPod("g")));
  cri::CreateContainerRequest request = CreationIn(pod);
  (*request.mutable_sandbox_config()->mutable_annotations())["env.example.com/REGION"] = "north";
  const cri::CreateContainerRequest seen = Create(request);
  ASSERT_EQ(seen.config().envs_size(), 4);
  EXPECT_EQ(seen.config().envs(3).key(), "REGION");
  EXPECT_EQ(seen.config().envs(3).value(), "north");
}

TEST_F(StagesTest, ARefusalOfALaterStageGivesTheCpusBack) {
  bool refuse = true;
  FunctionStage stage({.name = "strict", .operations = kCreate},
                      [&refuse](auto& call, Request&, const Adjustment&) {
                        if (!refuse) return call.Pass();
                        call.Refuse(FailedPrecondition("not here"));
                      });
  const NodeRun node(*this, {&stage});
  CriClient client = Client();
  const cri::PodSandboxConfig pod = MakeGuaranteedPod("g");
  const std::string pod_id = Ok(client.RunPod(pod));
  // Six of seven CPUs: there is no room for two of them.
  const cri::ContainerConfig large = MakeGuaranteedContainer("main", 6);
  EXPECT_THAT(client.CreateContainer(pod_id, pod, large),
              Fails(StatusCode::kFailedPrecondition, HasSubstr("not here")));
  EXPECT_TRUE(runtime_.Calls("CreateContainer").empty());
  OnLoop([&refuse] { refuse = false; });
  EXPECT_THAT(client.CreateContainer(pod_id, pod, large), IsOk());
}

TEST_F(StagesTest, AStageThatHangsDelaysOnlyItsOwnPodsCall) {
  std::vector<LateAnswer> answers;
  FunctionStage stage({.name = "slow", .operations = kCreate, .deadline = std::chrono::minutes(10)},
                      [&answers](auto& call, Request& request, const Adjustment&) {
                        if (request.ReadPod()->name != "hung") return call.Pass();
                        answers.push_back(call.AnswerLater());
                      });
  const NodeRun node(*this, {&stage});
  CriClient client = Client();
  const auto hung_pod = client.RunPod(MakeGuaranteedPod("hung"));
  const auto other_pod = client.RunPod(MakeGuaranteedPod("other"));
  ASSERT_THAT(hung_pod, IsOk());
  ASSERT_THAT(other_pod, IsOk());
  cri::CreateContainerRequest request;
  request.set_pod_sandbox_id(*hung_pod);
  *request.mutable_sandbox_config() = MakeGuaranteedPod("hung");
  *request.mutable_config() = MakeGuaranteedContainer("main", 1);
  const auto hung = client.Start("CreateContainer", request);

  EXPECT_THAT(client.CreateContainer(*other_pod, MakeGuaranteedPod("other"),
                                     MakeGuaranteedContainer("main", 2)),
              IsOk());
  EXPECT_EQ(runtime_.Calls("CreateContainer").size(), 1u);
  OnLoop([&answers] {
    ASSERT_EQ(answers.size(), 1u);
    answers[0].Pass();
  });
  EXPECT_TRUE(hung->Wait(kPatience)->status.ok());
  EXPECT_EQ(runtime_.Calls("CreateContainer").size(), 2u);
  OnLoop([&answers] { answers.clear(); });
}

TEST_F(StagesTest, TheClientGetsAReplyWhenTheStageThatHoldsItLetsGo) {
  std::optional<ReplyHold> hold;
  FunctionStage stage({.name = "holds", .operations = kCreate});
  stage.after = [&hold](auto& call, const Outcome& outcome) {
    EXPECT_TRUE(outcome.ok());
    hold.emplace(call.HoldReply());
  };
  const NodeRun node(*this, {&stage});
  CriClient client = Client();
  const std::string pod = Ok(client.RunPod(MakeGuaranteedPod("g")));
  cri::CreateContainerRequest request = CreationIn(pod);
  const auto call = client.Start("CreateContainer", request);
  ASSERT_TRUE(runtime_.WaitForCalls("CreateContainer", 1));
  bool held = false;
  while (!held)
    OnLoop([&] { held = hold.has_value(); });
  // Another call passes meanwhile.
  EXPECT_THAT(client.RunPod(MakeGuaranteedPod("other")), IsOk());
  OnLoop([&hold] { hold.reset(); });
  EXPECT_TRUE(call->Wait(kPatience)->status.ok());
}

TEST_F(StagesTest, TheClientGetsTheErrorOfAStageInPlaceOfAGoodReply) {
  FunctionStage stage({.name = "undoes", .operations = kCreate});
  bool held = false;
  stage.after = [&held](auto& call, const Outcome&) {
    if (!std::exchange(held, true)) {
      call.HoldReply().Fail(FailedPrecondition("not like this"));
    } else {
      call.FailReply(Unavailable("not now"));
    }
  };
  const NodeRun node(*this, {&stage});
  CriClient client = Client();
  const std::string pod = Ok(client.RunPod(MakeGuaranteedPod("g")));
  const auto create = [&](const std::string& name) {
    return client.CreateContainer(pod, MakeGuaranteedPod("g"), MakeGuaranteedContainer(name, 1));
  };
  EXPECT_THAT(create("one"), Fails(StatusCode::kFailedPrecondition, "not like this"));
  EXPECT_THAT(create("two"), Fails(StatusCode::kUnavailable, "not now"));
  EXPECT_EQ(runtime_.Calls("CreateContainer").size(), 2u);
}

// The questions to the runtime after a connect, with every kind of stage that a node can have.
class OneListTest : public StagesTest {
 protected:
  ~OneListTest() override { Stop(); }

  void StartNode() {
    NriHostingOptions nri;
    nri.host.socket = File("nri.sock");
    nri.host.plugin_path = "";
    Start({}, std::move(nri), HookHostingOptions{.directory = hooks_.path()});
  }
  // Waits until the runtime got `count` calls.
  void Await(std::string_view method, uint64_t count) {
    ASSERT_TRUE(runtime_.WaitForCalls(method, count, kPatience)) << method;
  }

  TempDir hooks_;
};

TEST_F(OneListTest, ARuntimeIsAskedForEachStatusOnceAfterAConnect) {
  constexpr uint64_t kPods = 3;
  constexpr uint64_t kContainers = 6;
  constexpr uint64_t kRounds = 4;
  StartNode();
  CriClient client = Client();
  for (uint64_t i = 0; i < kPods; ++i) {
    const auto config = MakeBestEffortPod("pod-" + std::to_string(i));
    const std::string pod = Ok(client.RunPod(config));
    for (uint64_t k = 0; k < kContainers / kPods; ++k) {
      ASSERT_THAT(
          client.CreateContainer(pod, config, MakeBestEffortContainer("c-" + std::to_string(k))),
          IsOk());
    }
  }
  // NRI plugins are shown facts of a sandbox that only its status has.
  Await("PodSandboxStatus", kPods);
  runtime_.CutConnections();
  Await("ContainerStatus", kContainers);
  Await("PodSandboxStatus", 2 * kPods);
  const uint64_t pods = runtime_.CallCount("PodSandboxStatus");
  const uint64_t containers = runtime_.CallCount("ContainerStatus");
  // A further question after one connect would be seen by the end of the next one.
  for (uint64_t round = 1; round <= kRounds; ++round) {
    runtime_.CutConnections();
    Await("ContainerStatus", containers + round * kContainers);
    Await("PodSandboxStatus", pods + round * kPods);
  }
  EXPECT_EQ(runtime_.CallCount("ContainerStatus"), containers + kRounds * kContainers);
  EXPECT_EQ(runtime_.CallCount("PodSandboxStatus"), pods + kRounds * kPods);
}

}  // namespace
}  // namespace resmgr::test
