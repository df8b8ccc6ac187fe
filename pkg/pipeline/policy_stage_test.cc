// SPDX-License-Identifier: Apache-2.0
#include "pkg/pipeline/policy_stage.h"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "pkg/claims/claim_names.h"
#include "pkg/pipeline/pipeline.h"
#include "pkg/pipeline/pipeline_call.h"
#include "pkg/resmgr/testing/test_node.h"
#include "pkg/sys/clock.h"
#include "pkg/topology/machine_source.h"

namespace resmgr {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// The hints that a policy wants, and those that the last container came with.
struct Wishes {
  bool paths = true;
  bool devices = true;
  std::vector<std::string> had{};
};

class WishingPolicy final : public test::FirstFitPolicy {
 public:
  WishingPolicy(const Machine& machine, Wishes& wishes)
      : FirstFitPolicy(machine), wishes_(wishes) {}
  StatusOr<Plan> Allocate(const Snapshot& snapshot, const Pod& pod, const Container& container,
                          const Container* predecessor) override {
    wishes_.had.clear();
    for (const LocalityHint& hint : container.hints)
      wishes_.had.push_back(hint.source);
    return FirstFitPolicy::Allocate(snapshot, pod, container, predecessor);
  }
  bool WantsHints() const override { return wishes_.paths; }
  bool WantsPodResources() const override { return wishes_.devices; }

 private:
  Wishes& wishes_;
};

// Knows one device of each container.
class OneDevice final : public DeviceHints {
 public:
  explicit OneDevice(EventLoop& loop) : finder_(loop, {}) {}

  bool asks = true;
  std::vector<std::string> asked{};

  std::unique_ptr<HintFinder::Question> Ask(
      const Pod& pod, const std::string& container,
      std::function<void(HintFinder::Hints)> answer) override {
    asked.push_back(FullName(pod, container));
    if (!asks) return nullptr;
    const LocalityHint hint{.source = "pod-resources gpu", .cpus = {}, .nodes = NodeSet{0}};
    return finder_.Ask([hint] { return HintFinder::Hints{hint}; }, std::move(answer));
  }

 private:
  HintFinder finder_;
};

// A creation with one device that has a path.
class Creation final : public PipelineCall::Front, public Request::Source {
 public:
  Creation(Pipeline& pipeline, CreateRequest create, ContainerDetails details = {})
      : create_(std::move(create)),
        details_(std::move(details)),
        request_(Operation::kCreateContainer, *this),
        call_(pipeline, *this) {
    request_.pod_id = create_.pod_id;
    request_.body = create_;
    call_.Start(request_);
  }
  void OnDecided(const Status& refusal, const Adjustment& adjustment) override {
    decided = refusal;
    cpus = adjustment.values.cpus.value_or(CpuSet());
  }
  void OnReplySeen() override {}
  bool Has(Operation, Field) const override { return true; }
  bool ReadCreate(CreateRequest& create) override {
    create = create_;
    return true;
  }
  std::optional<Pod> ReadPod() override {
    Pod pod;
    pod.namespace_name = "ns";
    pod.name = "of-the-request";
    return pod;
  }
  bool ReadDetails(DetailSet, ContainerDetails& details) override {
    details = details_;
    details.devices.push_back({.host_path = "/dev/gpu0"});
    return true;
  }

  std::optional<Status> decided;
  CpuSet cpus;

 private:
  const CreateRequest create_;
  const ContainerDetails details_;
  Request request_;
  PipelineCall call_;
};

class PolicyStageTest : public testing::Test {
 protected:
  PolicyStageTest() { pipeline_.SetPolicyStage(&stage_); }
  ~PolicyStageTest() override { pipeline_.SetPolicyStage(nullptr); }

  HintFinder::Options Finds() {
    HintFinder::Options options;
    options.find = [](const std::vector<HintPath>& paths) {
      HintFinder::Hints hints;
      for (const HintPath& path : paths)
        hints.push_back({.source = path.source, .cpus = {}, .nodes = NodeSet{0}});
      return hints;
    };
    return options;
  }
  // The hints with which a container of the pod is placed.
  std::vector<std::string> HintsOf(const PodSandboxId& pod) {
    Creation creation(pipeline_, test::TestNode::Request(pod, "main", 100));
    EXPECT_TRUE(node_.RunUntil([&] { return creation.decided.has_value(); }));
    return wishes_.had;
  }

  // By default for all pods of its namespace.
  CpuSet Reserved(const std::string& uid, std::vector<std::string> pods = {}) {
    const StatusOr<ClaimGrant> grant = node_.Reserve({.uid = uid,
                                                      .namespace_name = "ns",
                                                      .name = uid,
                                                      .parts = {{.device = "cpu", .cpus = 1}},
                                                      .pods = std::move(pods)});
    EXPECT_TRUE(grant.ok()) << grant.status();
    return grant.ok() ? grant->All() : CpuSet();
  }
  // A container of a pod of its own. The outcome of its creation is seen at once.
  std::unique_ptr<Creation> Created(const std::string& name, ContainerDetails details) {
    auto creation = std::make_unique<Creation>(
        pipeline_, test::TestNode::Request(node_.AddPod(name, QosClass::kBurstable), name, 100),
        std::move(details));
    EXPECT_TRUE(node_.RunUntil([&creation] { return creation->decided.has_value(); }));
    return creation;
  }

  Wishes wishes_;
  test::TestNode node_{*LoadMachine("synthetic:core:4 pu:1"), [this](const Machine& machine) {
                         return std::make_unique<WishingPolicy>(machine, wishes_);
                       }};
  LoopClock clock_{node_.loop()};
  Pipeline pipeline_{clock_, nullptr};
  HintFinder hints_{node_.loop(), Finds()};
  OneDevice devices_{node_.loop()};
  PolicyStage stage_{node_.manager(), hints_, [] { return OkStatus(); }, &devices_};
};

TEST_F(PolicyStageTest, HintsOfBothKindsComeInOneOrder) {
  const PodSandboxId pod = node_.AddPod("a", QosClass::kBurstable);
  for (int i = 0; i < 20; ++i) {
    EXPECT_THAT(HintsOf(pod), ElementsAre("device /dev/gpu0", "pod-resources gpu"));
  }
  EXPECT_EQ(devices_.asked.front(), "ns/a/main");
}

TEST_F(PolicyStageTest, OnlyWhatThePolicyWantsIsAsked) {
  const PodSandboxId pod = node_.AddPod("a", QosClass::kBurstable);
  wishes_.paths = false;
  EXPECT_THAT(HintsOf(pod), ElementsAre("pod-resources gpu"));
  wishes_.devices = false;
  EXPECT_THAT(HintsOf(pod), IsEmpty());
  wishes_.paths = true;
  EXPECT_THAT(HintsOf(pod), ElementsAre("device /dev/gpu0"));
  EXPECT_THAT(devices_.asked, testing::SizeIs(1));
}

TEST_F(PolicyStageTest, PathsAreFoundWhereTheKubeletIsNotAskedNow) {
  const PodSandboxId pod = node_.AddPod("a", QosClass::kBurstable);
  devices_.asks = false;
  EXPECT_THAT(HintsOf(pod), ElementsAre("device /dev/gpu0"));
  wishes_.paths = false;
  EXPECT_THAT(HintsOf(pod), IsEmpty());
}

TEST_F(PolicyStageTest, PodOfTheRequestIsAskedForWhereTheSandboxIsNotKnown) {
  HintsOf(PodSandboxId("unknown"));
  EXPECT_THAT(devices_.asked, ElementsAre("ns/of-the-request/main"));
}

TEST_F(PolicyStageTest, ACdiDeviceShowsTheClaimOfAContainer) {
  const CpuSet claimed = Reserved("u-1");
  ContainerDetails details;
  details.cdi_devices = {"nvidia.com/gpu=claim-u-1", ClaimDevice(kClaimKind, "u-1")};
  const auto carrier = Created("carrier", details);
  EXPECT_TRUE(carrier->decided->ok()) << *carrier->decided;
  EXPECT_EQ(carrier->cpus, claimed);
  details.cdi_devices = {ClaimDevice(kCompatibleClaimKind, "unknown")};
  EXPECT_EQ(Created("forged", details)->decided->code(), StatusCode::kNotFound);
}

// The claims of this node may be lost.
TEST_F(PolicyStageTest, ACdiDeviceOfOursIsRefusedWhereNothingIsHeld) {
  ContainerDetails details;
  details.cdi_devices = {ClaimDevice(kClaimKind, "u-1")};
  EXPECT_EQ(Created("forgotten", details)->decided->code(), StatusCode::kNotFound);
  details.cdi_devices = {ClaimDevice(kCompatibleClaimKind, "u-1")};
  const auto of_others = Created("of-others", details);
  EXPECT_TRUE(of_others->decided->ok()) << "another driver may have it; " << *of_others->decided;
}

TEST_F(PolicyStageTest, AVariableShowsNoClaimInARequestWithDevices) {
  const CpuSet claimed = Reserved("u-1");
  ContainerDetails details;
  details.environment.Add(ClaimVariable("u-1"), claimed.ToString());
  const auto typed = Created("typed", details);
  EXPECT_TRUE(typed->decided->ok()) << *typed->decided;
  EXPECT_FALSE(typed->cpus.Intersects(claimed));
}

TEST_F(PolicyStageTest, AVariableShowsAHeldClaimWhereTheDoorHasNothingElse) {
  stage_.TakeClaimsFromVariables();
  const CpuSet claimed = Reserved("u-1");
  ContainerDetails unknown;
  unknown.environment.Add(ClaimVariable("typed-by-a-user"), "0-3");
  const auto typed = Created("typed", unknown);
  EXPECT_TRUE(typed->decided->ok()) << *typed->decided;
  EXPECT_FALSE(typed->cpus.Intersects(claimed));
  ContainerDetails details;
  details.environment.Add(ClaimVariable("u-1"), claimed.ToString());
  EXPECT_EQ(Created("carrier", details)->cpus, claimed);
}

TEST_F(PolicyStageTest, AVariableShowsNoClaimOfOtherPods) {
  stage_.TakeClaimsFromVariables();
  const CpuSet claimed = Reserved("u-1", {"uid-mine", "uid-too"});
  ContainerDetails details;
  details.environment.Add(ClaimVariable("u-1"), claimed.ToString());
  EXPECT_EQ(Created("neighbour", details)->decided->code(), StatusCode::kNotFound);
  EXPECT_EQ(Created("mine", details)->cpus, claimed);
}

TEST_F(PolicyStageTest, ACdiDeviceIsTrustedMoreThanAVariable) {
  stage_.TakeClaimsFromVariables();
  const CpuSet claimed = Reserved("u-1", {"uid-first"});
  ContainerDetails details;
  details.environment.Add(ClaimVariable("u-1"), claimed.ToString());
  details.cdi_devices = {ClaimDevice(kClaimKind, "u-1")};
  EXPECT_EQ(Created("later", details)->cpus, claimed) << "the kubelet has set it";
}

}  // namespace
}  // namespace resmgr
