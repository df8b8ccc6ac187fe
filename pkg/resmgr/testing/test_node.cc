// SPDX-License-Identifier: Apache-2.0
#include "pkg/resmgr/testing/test_node.h"

#include <utility>

#include <gtest/gtest.h>

#include "pkg/kube/cpu_arithmetic.h"
#include "pkg/model/requirements.h"
#include "pkg/topology/machine.h"
#include "test/support/wait.h"

namespace resmgr::test {
namespace {

int Wanted(const Pod& pod, const Container& container) {
  const MilliCpu request = container.requirements.cpu_request;
  const bool entitled = pod.qos == QosClass::kGuaranteed && request.IsWhole() &&
                        WhyCpuIsOfPod(container.requirements).empty();
  return entitled ? static_cast<int>(request.Whole()) : 0;
}

}  // namespace

TestNode::TestNode(Machine machine, const MakePolicy& make_policy, ResourceManager::Options options)
    : machine_(std::move(machine)), make_policy_(make_policy), options_(options) {
  MakeManager();
  manager_->RuntimeConnected();
  runtime.AnswerList();
}

ResourceManager::Options TestNode::FastOptions() {
  using std::chrono::milliseconds;
  return {.start_timeout = milliseconds(200),
          .first_retry = milliseconds(1),
          .last_retry = milliseconds(4),
          .start_limit = milliseconds(20),
          .refresh_pause = milliseconds(4),
          .event_pause = milliseconds(1)};
}

ResourceManager::Options TestNode::Observed(Observer& observer) {
  ResourceManager::Options options = FastOptions();
  options.observer = &observer;
  return options;
}

void TestNode::MakeManager() {
  std::unique_ptr<Policy> policy = make_policy_(machine_);
  policy_ = policy.get();
  if (files_ != nullptr) {
    state_ = std::make_unique<StateStore>(*files_, "/state", StateLabel(machine_),
                                          [](std::string_view) {});
  }
  manager_ = std::make_unique<ResourceManager>(loop_, machine_, std::move(policy), runtime,
                                               state_.get(), options_);
}

PodSandboxId TestNode::AddPod(std::string_view name, QosClass qos) {
  Pod pod;
  pod.id = PodSandboxId(fmt::format("sandbox-{}", ++last_id_));
  pod.uid = PodUid(fmt::format("uid-{}", name));
  pod.name = name;
  pod.namespace_name = "ns";
  pod.qos = qos;
  runtime.held.pods.push_back(pod);
  PodSandboxId id = pod.id;
  manager_->PodCreated(std::move(pod));
  return id;
}

LinuxResources TestNode::Resources(int64_t milli_cpu) {
  LinuxResources resources;
  resources.cpu_period = kDefaultCpuPeriod;
  resources.cpu_quota = QuotaFromMilliCpu(MilliCpu{milli_cpu});
  resources.cpu_shares = SharesFromMilliCpu(MilliCpu{milli_cpu});
  return resources;
}

CreateRequest TestNode::Request(const PodSandboxId& pod, std::string_view name, int64_t milli_cpu,
                                uint32_t attempt) {
  CreateRequest request;
  request.pod_id = pod;
  request.name = name;
  request.attempt = attempt;
  request.has_resources = true;
  request.resources = Resources(milli_cpu);
  return request;
}

ContainerId TestNode::Hold(const CreateRequest& request, const Admission& admission) {
  RuntimeContainer container;
  container.id = ContainerId(fmt::format("{}-{}", request.name, ++last_id_));
  container.pod_id = request.pod_id;
  container.name = request.name;
  container.attempt = request.attempt;
  container.state = ContainerState::kCreated;
  container.resources = request.resources;
  runtime.held.containers.push_back(container);
  runtime.Apply(container.id, admission.adjustment);
  return container.id;
}

ContainerId TestNode::Created(const CreateRequest& request, const Admission& admission) {
  ContainerId id = Hold(request, admission);
  manager_->CreateSucceeded(admission.key, id);
  return id;
}

StatusOr<ContainerId> TestNode::Create(const CreateRequest& request) {
  RESMGR_ASSIGN_OR_RETURN(const Admission admission, manager_->AdmitCreate(CreateRequest(request)));
  return Created(request, admission);
}

StatusOr<ContainerId> TestNode::Create(std::string_view name, QosClass qos, int64_t milli_cpu) {
  return Create(Request(AddPod(name, qos), name, milli_cpu));
}

void TestNode::Start(const ContainerId& id) {
  bool admitted = false;
  const auto wait = manager_->AdmitStart(id, [&admitted](const Status& status) {
    EXPECT_TRUE(status.ok()) << status;
    admitted = true;
  });
  EXPECT_EQ(wait, nullptr) << id.value() << " has to wait";
  if (admitted) Started(id);
}

void TestNode::Started(const ContainerId& id) {
  runtime.EndStart(id);
  if (options_.clock != nullptr) runtime.Find(id)->started_at = options_.clock->Now();
  manager_->StartSucceeded(id);
}

ContainerId TestNode::Run(std::string_view name, QosClass qos, int64_t milli_cpu) {
  const StatusOr<ContainerId> id = Create(name, qos, milli_cpu);
  EXPECT_TRUE(id.ok()) << id.status();
  if (!id.ok()) return ContainerId();
  runtime.AnswerAll();
  Start(*id);
  return *id;
}

void TestNode::Stop(const ContainerId& id) {
  runtime.Find(id)->state = ContainerState::kExited;
  manager_->ContainerStopped(id);
}

void TestNode::Remove(const ContainerId& id) {
  runtime.Remove(id);
  manager_->ContainerRemoved(id);
}

void TestNode::Crash(const ContainerId& id) {
  runtime.Find(id)->state = ContainerState::kExited;
}

void TestNode::Reconnect() {
  manager_->RuntimeDisconnected();
  runtime.DropAll();
  manager_->RuntimeConnected();
  runtime.AnswerList();
}

void TestNode::Restart(const std::function<void()>& ended) {
  runtime.DropAll();
  manager_.reset();
  state_.reset();
  if (ended) ended();
  MakeManager();
  manager_->RuntimeConnected();
  runtime.AnswerList();
}

Status TestNode::SetOffline(const CpuSet& offline) {
  Machine::Parts parts{
      .cpus = machine_.cpus(), .nodes = machine_.nodes(), .allowed = machine_.allowed()};
  for (Cpu& cpu : parts.cpus)
    cpu.online = !offline.Contains(cpu.id);
  machines_.push_back(std::make_unique<Machine>(MakeMachine(std::move(parts))));
  std::unique_ptr<Policy> next = make_policy_(*machines_.back());
  Policy* const made = next.get();
  Status set = manager_->policy_changes().SetOffline({.cpus = offline}, std::move(next));
  if (set.ok()) policy_ = made;
  return set;
}

void TestNode::KeepState(FileSystem& files) {
  files_ = &files;
  Restart();
}

void TestNode::FlushState() {
  EXPECT_TRUE(state_->Flush(std::chrono::seconds(10)));
}

std::optional<SavedContainer> TestNode::Saved(const ContainerId& id) const {
  return state_ == nullptr ? std::nullopt : state_->Find(id);
}

const Container* TestNode::Known(const ContainerId& id) const {
  const Container* known = nullptr;
  manager_->snapshot().ForEachContainer([&](const Pod&, const Container& container) {
    if (container.id == id) known = &container;
  });
  return known;
}

std::string TestNode::Placed(const ContainerId& id) const {
  const Container* const container = Known(id);
  return container == nullptr ? "" : container->placement.cpus.value_or(CpuSet()).ToString();
}

std::string TestNode::Exclusive(const ContainerId& id) const {
  const Container* const container = Known(id);
  return container == nullptr ? "" : container->placement.exclusive.ToString();
}

StatusOr<ClaimGrant> TestNode::Reserve(const Claim& claim) {
  std::optional<StatusOr<ClaimGrant>> reply;
  manager_->claims().Reserve(claim, [&reply](StatusOr<ClaimGrant> grant) { reply = grant; });
  EXPECT_TRUE(RunUntil([&] {
    runtime.AnswerAll();
    return reply.has_value();
  }));
  return reply.value_or(Internal("no reply"));
}

size_t TestNode::KnownContainers() const {
  size_t count = 0;
  manager_->snapshot().ForEachContainer([&count](const Pod&, const Container&) { ++count; });
  return count;
}

bool TestNode::RunUntil(const std::function<bool()>& condition) {
  return test::RunUntil(loop_, condition);
}

StatusOr<Plan> FirstFitPolicy::Reconcile(const Snapshot& snapshot) {
  ++reconciled;
  grants_.clear();
  const auto for_each_entitled = [&snapshot](const auto& visit) {
    snapshot.ForEachContainer([&visit](const Pod& pod, const Container& container) {
      if (const int count = Wanted(pod, container); count > 0) visit(container, count);
    });
  };
  // Containers get decided CPUs first, then the CPUs that they are on.
  for (const bool decided : {true, false}) {
    for_each_entitled([this, decided](const Container& container, int count) {
      if (grants_.contains(container.key)) return;
      const CpuSet cpus = container.placement.cpus.value_or(CpuSet());
      if (decided && container.placement.exclusive != cpus) return;
      if (cpus.size() == count && cpus.IsSubsetOf(Free())) grants_[container.key] = cpus;
    });
  }
  for_each_entitled([this](const Container& container, int count) {
    if (grants_.contains(container.key)) return;
    const StatusOr<CpuSet> cpus = Choose({}, count, container.name);
    if (cpus.ok()) grants_[container.key] = *cpus;
  });
  return Changes(snapshot);
}

StatusOr<Plan> FirstFitPolicy::Allocate(const Snapshot& snapshot, const Pod& pod,
                                        const Container& container, const Container* predecessor) {
  if (predecessor == nullptr) return Regrant(snapshot, pod, container, container.key, {});
  return Regrant(snapshot, pod, container, predecessor->key, predecessor->placement.exclusive);
}

StatusOr<Plan> FirstFitPolicy::Update(const Snapshot& snapshot, const Pod& pod,
                                      const Container& container) {
  const auto held = grants_.find(container.key);
  const CpuSet former = held == grants_.end() ? CpuSet() : held->second;
  return Regrant(snapshot, pod, container, container.key, former);
}

StatusOr<Plan> FirstFitPolicy::Regrant(const Snapshot& snapshot, const Pod& pod,
                                       const Container& container, ContainerKey from,
                                       const CpuSet& former) {
  const std::map<ContainerKey, CpuSet> before = grants_;
  grants_.erase(from);
  if (const int count = Wanted(pod, container); count > 0) {
    const StatusOr<CpuSet> cpus = Choose(former, count, FullName(pod, container.name));
    if (!cpus.ok()) {
      grants_ = before;
      return cpus.status();
    }
    grants_[container.key] = *cpus;
  }
  return Changes(snapshot);
}

StatusOr<Plan> FirstFitPolicy::Release(const Snapshot& snapshot, ContainerKey key) {
  grants_.erase(key);
  return Changes(snapshot);
}

CpuSet FirstFitPolicy::Free() const {
  CpuSet free = machine_.online() - CpuSet{0};
  for (const auto& [key, cpus] : grants_)
    free -= cpus;
  return free;
}

StatusOr<CpuSet> FirstFitPolicy::Choose(const CpuSet& first, int count,
                                        std::string_view name) const {
  const CpuSet free = Free();
  CpuSet chosen;
  for (const CpuSet& from : {first & free, free}) {
    for (const int cpu : from) {
      if (chosen.size() < count) chosen.Add(cpu);
    }
  }
  if (chosen.size() == count) return chosen;
  return ResourceExhausted("container {}: needs {} CPUs, {} are free", name, count, free.size());
}

Plan FirstFitPolicy::Changes(const Snapshot& snapshot) {
  const CpuSet shared = Free() | CpuSet{0};
  Plan plan;
  snapshot.ForEachContainer([&](const Pod&, const Container& container) {
    const auto grant = grants_.find(container.key);
    Placement placement;
    if (!left_alone.contains(container.name)) placement.cpus = shared;
    if (grant != grants_.end()) {
      placement.cpus = grant->second;
      placement.exclusive = grant->second;
      placement.cpu_quota = -1;
    }
    const Placement& before = container.placement;
    if (placement.values() == before.values() && placement.exclusive == before.exclusive) return;
    plan.changes.push_back({container.key, std::move(placement)});
  });
  if (spoil) spoil(plan);
  return plan;
}

}  // namespace resmgr::test
