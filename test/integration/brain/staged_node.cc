// SPDX-License-Identifier: Apache-2.0
#include "test/integration/brain/staged_node.h"

#include <algorithm>
#include <utility>

#include <gtest/gtest.h>

#include "pkg/model/resources_annotation.h"

namespace resmgr::test {
namespace {

// No part of a change reaches the disk.
constexpr int kNothing = -1;

ResourceManager::Options PromptOptions() {
  ResourceManager::Options options = TestNode::FastOptions();
  options.refresh_pause = std::chrono::milliseconds(0);
  return options;
}

void Edit(const KeyedEdits<std::string>& edits, StringMap& texts) {
  std::vector<std::pair<std::string, std::string>> kept;
  for (const auto& [key, value] : texts) {
    if (edits.Find(key) == nullptr) kept.emplace_back(key, value);
  }
  for (const auto& edit : edits) {
    if (edit.value) kept.emplace_back(edit.key, *edit.value);
  }
  texts = StringMap(kept.begin(), kept.end());
}

// The resources that the runtime takes from an adjusted request.
LinuxResources Adjusted(const LinuxResources& asked, const Adjustment& adjustment) {
  LinuxResources resources = Merged(asked, AsResources(adjustment.values));
  const WideAdjustment* const wide = adjustment.wide();
  if (wide == nullptr) return resources;
  if (wide->memory_limit) resources.memory_limit = wide->memory_limit;
  if (wide->oom_score_adj) resources.oom_score_adj = wide->oom_score_adj;
  return resources;
}

FunctionStage::BeforeFunction ByChange(const StagedNode::Change& change) {
  return [&change](FunctionStage::TestCall& call, Request& request, const Adjustment&) {
    Adjustment adjustment;
    if (change) change(request, adjustment);
    call.Adjust(std::move(adjustment));
  };
}

Stage::Options Named(const std::string& name) {
  using enum Operation;
  return {.name = name,
          .operations = {kRunPodSandbox, kCreateContainer, kUpdateContainerResources}};
}

}  // namespace

// A client's call, as a front door sees it.
class StagedNode::Call final : public PipelineCall::Front, public Request::Source {
 public:
  Call(Pipeline& pipeline, Operation operation)
      : request(operation, *this), pipeline_call(pipeline, *this) {}

  void OnDecided(const Status& refusal, const Adjustment& adjustment) override {
    decided = refusal;
    sent = &adjustment;
  }
  void OnReplySeen() override {}
  bool Has(Operation, Field) const override { return true; }

  bool ReadCreate(CreateRequest& create) override {
    create = created;
    return true;
  }
  std::optional<Pod> ReadPod() override { return std::nullopt; }
  bool ReadDetails(DetailSet, ContainerDetails&) override { return false; }

  Request request;
  CreateRequest created;
  std::optional<Status> decided;
  const Adjustment* sent = nullptr;
  PipelineCall pipeline_call;
};

StagedNode::StagedNode(Machine machine, const TestNode::MakePolicy& make_policy)
    : node_(std::move(machine), make_policy, PromptOptions()),
      clock_(node_.loop()),
      pipeline_(clock_),
      hints_(node_.loop(), {}),
      hooks_(Named("hooks"), ByChange(first)),
      plugins_(Named("plugins"), ByChange(second)) {
  node_.KeepState(files_);
  pipeline_.Add(hooks_);
  pipeline_.Add(plugins_);
  Connect();
}

StagedNode::~StagedNode() {
  pipeline_.SetPolicyStage(nullptr);
}

void StagedNode::Connect() {
  policy_stage_ = std::make_unique<PolicyStage>(node_.manager(), hints_, [] { return OkStatus(); });
  pipeline_.SetPolicyStage(policy_stage_.get());
}

Status StagedNode::Decide(Call& call) {
  call.pipeline_call.Start(call.request);
  const bool decided = node_.RunUntil([&] {
    Settle();
    return call.decided.has_value();
  });
  EXPECT_TRUE(decided);
  return call.decided.value_or(Internal("not decided"));
}

void StagedNode::Settle() {
  while (!runtime().lists.empty())
    runtime().AnswerList();
  while (!runtime().updates.empty()) {
    const FakeRuntimeClient::Update update = runtime().updates.front();
    runtime().updates.erase(runtime().updates.begin());
    runtime().Apply(update.id, update.adjustment);
    RunOwnPlugins(update.id);
    update.done(OkStatus());
  }
}

void StagedNode::RunOwnPlugins(const ContainerId& id) {
  RuntimeContainer* const container = runtime().Find(id);
  if (own_plugins && container != nullptr) own_plugins(*container);
}

void StagedNode::Report() {
  bool done = false;
  node_.manager().synchronizer().Refresh([&done](const Status&) { done = true; });
  EXPECT_TRUE(node_.RunUntil([&] {
    Settle();
    return done;
  }));
}

PodSandboxId StagedNode::RunPod(Pod pod) {
  SetQos(pod.cgroup_parent, pod);
  Call call(pipeline_, Operation::kRunPodSandbox);
  call.request.body = pod;
  EXPECT_TRUE(Decide(call).ok());
  pod.id = PodSandboxId("sandbox-" + std::to_string(++ids_));
  if (const WideAdjustment* const wide = call.sent->wide()) {
    Edit(wide->labels, pod.labels);
    Edit(wide->annotations, pod.annotations);
    pod.cgroup_parent = wide->cgroup_parent.value_or(pod.cgroup_parent);
    SetQos(pod.cgroup_parent, pod);
  }
  runtime().held.pods.push_back(pod);
  call.pipeline_call.OnReply({.id = pod.id.value()});
  return pod.id;
}

StatusOr<ContainerId> StagedNode::Create(const PodSandboxId& pod, const std::string& name,
                                         const LinuxResources& resources, StringMap labels) {
  Call call(pipeline_, Operation::kCreateContainer);
  call.created.pod_id = pod;
  call.created.name = name;
  call.created.labels = std::move(labels);
  call.created.has_resources = true;
  call.created.resources = resources;
  call.request.pod_id = pod;
  call.request.body = call.created;
  if (Status decided = Decide(call); !decided.ok()) return decided;
  RuntimeContainer container;
  container.id = ContainerId(name + "-" + std::to_string(++ids_));
  container.pod_id = pod;
  container.name = name;
  container.labels = call.created.labels;
  if (const WideAdjustment* const wide = call.sent->wide()) Edit(wide->labels, container.labels);
  container.resources = Adjusted(resources, *call.sent);
  ContainerId id = container.id;
  if (cut != Cut::kBeforeTheRuntime) {
    runtime().held.containers.push_back(std::move(container));
    RunOwnPlugins(id);
  }
  if (cut != Cut::kNever) return KillInCall(call);
  call.pipeline_call.OnReply({.id = id.value()});
  Settle();
  return id;
}

Status StagedNode::Start(const ContainerId& id) {
  Call call(pipeline_, Operation::kStartContainer);
  call.request.container_id = id;
  RESMGR_RETURN_IF_ERROR(Decide(call));
  runtime().BeginStart(id);
  runtime().EndStart(id);
  call.pipeline_call.OnReply({});
  Settle();
  return OkStatus();
}

Status StagedNode::Update(const ContainerId& id, const LinuxResources& resources) {
  Call call(pipeline_, Operation::kUpdateContainerResources);
  call.request.container_id = id;
  call.request.body = ContainerUpdate{.has_linux = true, .resources = resources};
  RESMGR_RETURN_IF_ERROR(Decide(call));
  if (cut != Cut::kBeforeTheRuntime) {
    RuntimeContainer& container = *runtime().Find(id);
    container.resources = Merged(container.resources, Adjusted(resources, *call.sent));
    RunOwnPlugins(id);
  }
  if (cut != Cut::kNever) return KillInCall(call);
  call.pipeline_call.OnReply({});
  Settle();
  return OkStatus();
}

void StagedNode::Stop(const ContainerId& id) {
  runtime().Find(id)->state = ContainerState::kExited;
  Call call(pipeline_, Operation::kStopContainer);
  call.request.container_id = id;
  EXPECT_TRUE(Decide(call).ok());
  call.pipeline_call.OnReply({});
  Settle();
}

void StagedNode::SetByStage(const ContainerId& id, const ResourceValues& values) {
  pipeline_.TellSetByStage(id, values, false);
  runtime().Apply(id, values);
  RunOwnPlugins(id);
  pipeline_.TellSetByStage(id, values, true);
  Settle();
}

// From now on no action of the daemon is visible outside.
Status StagedNode::KillInCall(Call& call) {
  cut = Cut::kNever;
  node_.FlushState();
  files_.StopAfter(kNothing);
  call.pipeline_call.Abandon();
  node_.FlushState();
  Kill();
  return Unavailable("killed");
}

void StagedNode::Kill() {
  node_.FlushState();
  pipeline_.SetPolicyStage(nullptr);
  policy_stage_.reset();
  // A killed daemon does not write its last state.
  if (!files_.stopping()) files_.StopAfter(kNothing);
  node_.Restart([this] { files_.Resume(); });
  Connect();
  Settle();
}

bool StagedNode::InForce(const ContainerId& id) {
  const Container& known = Known(id);
  return node_.manager().Settled(known.key) &&
         runtime().CpusOf(id) == known.placement.cpus.value_or(CpuSet()).ToString();
}

const Container& StagedNode::Known(const ContainerId& id) const {
  const Container* const known = node_.Known(id);
  EXPECT_NE(known, nullptr) << id.value();
  static const Container kNone;
  return known == nullptr ? kNone : *known;
}

const Pod& StagedNode::PodOf(const ContainerId& id) const {
  return *const_cast<TestNode&>(node_).manager().snapshot().FindPod(Known(id).pod_id);
}

}  // namespace resmgr::test
