// SPDX-License-Identifier: Apache-2.0
#include "pkg/simulator/simulated_node.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "pkg/kube/cpu_arithmetic.h"
#include "pkg/policy/conventions.h"
#include "pkg/topology/machine.h"

namespace resmgr {

namespace {

constexpr std::chrono::seconds kFlushTime{10};
// Longer than a start may wait for others to leave its CPUs (ResourceManager::Options).
constexpr std::chrono::seconds kDeadline{20};
// The node is quiet after this many turns of the loop without activity: an answer may post a task,
// which makes a call.
constexpr int kQuietTurns = 3;

// How many CPUs a container would use if there were enough, and how many of its CPUs are exclusive.
struct ContainerUseWanted {
  double wanted = 0;
  double own = 0;
};

}  // namespace

std::chrono::milliseconds SampleTime(std::chrono::milliseconds interval,
                                     std::chrono::milliseconds passed) {
  constexpr int kPart = 10'000;
  return std::max(interval, passed / kPart);
}

SimulatedNode::SimulatedNode(const Machine& machine, std::unique_ptr<Policy> policy,
                             RuntimesConfig runtimes)
    : machine_(machine), runtimes_(std::move(runtimes)), runtime_(loop_) {
  StartManager(std::move(policy));
}

SimulatedNode::~SimulatedNode() = default;

void SimulatedNode::StartManager(std::unique_ptr<Policy> policy) {
  state_ =
      std::make_unique<StateStore>(files_, "/state", StateLabel(machine_), [](std::string_view) {});
  ResourceManager::Options options;
  options.clock = &clock_;
  options.runtimes = runtimes_;
  options.observer = this;
  manager_ = std::make_unique<ResourceManager>(loop_, machine_, std::move(policy), runtime_,
                                               state_.get(), options);
  by_use_.emplace(UseRebalancer::Options{.clock = clock_,
                                         .manager = [this] { return manager_.get(); },
                                         .after_restart = state_->size() > 0});
  by_use_->Configure(usage_);
  manager_->RuntimeConnected();
  bool ready = false;
  manager_->synchronizer().WhenReady([&ready](const Status&) { ready = true; });
  Settle([&ready] { return ready; });
  keys_.clear();
  manager_->snapshot().ForEachContainer([this](const Pod&, const Container& container) {
    keys_.emplace(container.id, container.key);
  });
}

void SimulatedNode::Note(const Snapshot& snapshot, const Shift& shift) {
  if (shift.from.exclusive == shift.to.exclusive) return;
  const Container* const container = snapshot.FindContainer(shift.first);
  if (container != nullptr) runtime_.Touch(container->id);
}

void SimulatedNode::NoteMoves(const Act& act) {
  for (const Shift& shift : act.others)
    Note(act.snapshot, shift);
}

void SimulatedNode::OnMoved(const Act& act, const Shift& shift) {
  Note(act.snapshot, shift);
}

void SimulatedNode::Settle(const std::function<bool()>& condition) {
  int quiet = 0;
  const auto alive = std::make_shared<char>();
  // A turn runs after all tasks that were posted before it, so each turn sees their effects.
  const std::function<void()> look = [&, weak = std::weak_ptr(alive)] {
    if (weak.expired()) return;
    quiet = condition() && !runtime_.busy() ? quiet + 1 : 0;
    if (quiet >= kQuietTurns) {
      loop_.Stop();
    } else {
      loop_.Post(look);
    }
  };
  loop_.Post(look);
  const auto deadline = loop_.After(kDeadline, [this] { loop_.Stop(); });
  loop_.Run();
}

void SimulatedNode::RunPod(Pod pod) {
  runtime_.AddPod(pod);
  manager_->PodCreated(std::move(pod));
  Settle();
}

void SimulatedNode::UpdatePod(const PodSandboxId& id, const LinuxResources& overhead,
                              const LinuxResources& resources) {
  manager_->PodResourcesChanged(id, overhead, resources);
  Settle();
}

void SimulatedNode::StopPod(const PodSandboxId& id) {
  for (const ContainerId& container : runtime_.ContainersOf(id))
    runtime_.SetExited(container);
  manager_->PodStopped(id);
  Settle();
}

void SimulatedNode::RemovePod(const PodSandboxId& id) {
  const std::vector<ContainerId> containers = runtime_.ContainersOf(id);
  runtime_.RemovePod(id);
  manager_->PodRemoved(id);
  Settle();
  for (const ContainerId& container : containers) {
    keys_.erase(container);
    wanted_.erase(container);
  }
}

Status SimulatedNode::Create(const CreateRequest& request, const ContainerId& id,
                             std::vector<std::string> claims) {
  RESMGR_ASSIGN_OR_RETURN(
      const Admission admission,
      manager_->AdmitCreate(CreateRequest(request), RefusalKind::kFinal, std::move(claims)));
  if (Status possible = CheckClasses(admission.key); !possible.ok()) {
    manager_->CreateFailed(admission.key, possible);
    Settle();
    return possible;
  }
  RuntimeContainer container;
  container.id = id;
  container.pod_id = request.pod_id;
  container.name = request.name;
  container.attempt = request.attempt;
  container.labels = request.labels;
  container.annotations = request.annotations;
  container.resources = request.resources;
  runtime_.Add(std::move(container));
  runtime_.Apply(id, admission.adjustment);
  keys_[id] = admission.key;
  manager_->CreateSucceeded(admission.key, id);
  Settle();
  return OkStatus();
}

Status SimulatedNode::CheckClasses(ContainerKey key) const {
  if (classes_ == nullptr || !classes_->config().any()) return OkStatus();
  const Snapshot& all = manager_->snapshot();
  const Container* const container = all.FindContainer(key);
  const Pod* const pod = container == nullptr ? nullptr : all.FindPod(container->pod_id);
  if (pod == nullptr) return OkStatus();
  const ClassNames of_pool = policy().ClassesOf(key);
  Status chosen = classes_->Choose(ClassedContainer::Of(*pod, *container, of_pool)).status();
  if (chosen.ok()) return chosen;
  return Annotate(chosen, fmt::format("container {}", Printable(FullName(*pod, container->name))));
}

std::vector<PreviewedClass> SimulatedNode::ClassesOf(const ContainerId& id) const {
  const auto key = keys_.find(id);
  if (classes_ == nullptr || !classes_->config().any() || key == keys_.end()) return {};
  FreeOf free;
  ChosenClasses chosen;
  CpuSet own;
  manager_->snapshot().ForEachContainer([&](const Pod& pod, const Container& container) {
    const bool is_it = container.key == key->second;
    if (container.state == ContainerState::kExited) return;
    if (!is_it && container.placement.exclusive.empty()) return;
    const ClassNames of_pool = policy().ClassesOf(container.key);
    ChosenClasses its = classes_->ChooseLeniently(ClassedContainer::Of(pod, container, of_pool));
    classes_->AddFree(its, container.placement.exclusive, free);
    if (!is_it) return;
    chosen = std::move(its);
    own = container.placement.exclusive;
  });
  return classes_->Describe(chosen, own, free);
}

Status SimulatedNode::Start(const ContainerId& id) {
  std::optional<Status> admitted;
  const auto wait =
      manager_->AdmitStart(id, [&admitted](const Status& status) { admitted = status; });
  Settle([&admitted] { return admitted.has_value(); });
  if (!admitted) return Internal("the start of container {} was not decided", id.value());
  RESMGR_RETURN_IF_ERROR(*admitted);
  runtime_.SetRunning(id, clock_.Now());
  manager_->StartSucceeded(id);
  Settle();
  return OkStatus();
}

Status SimulatedNode::Update(const ContainerId& id, const LinuxResources& resources) {
  RESMGR_ASSIGN_OR_RETURN(const Admission admission, manager_->AdmitUpdate(id, resources));
  runtime_.Apply(id, resources);
  runtime_.Apply(id, admission.adjustment);
  manager_->UpdateSucceeded(admission);
  Settle();
  return OkStatus();
}

Status SimulatedNode::Reserve(const Claim& claim) {
  std::optional<Status> reserved;
  manager_->claims().Reserve(
      claim, [&reserved](const StatusOr<ClaimGrant>& grant) { reserved = grant.status(); });
  Settle([&reserved] { return reserved.has_value(); });
  return reserved.value_or(Internal("the claim was not decided"));
}

Status SimulatedNode::GiveBack(const std::string& uid) {
  std::optional<Status> released;
  manager_->claims().Release(uid, [&released](const Status& status) { released = status; });
  Settle([&released] { return released.has_value(); });
  return released.value_or(Internal("the release of the claim did not end"));
}

const HeldClaim* SimulatedNode::FindClaim(const std::string& uid) const {
  return manager_->held_claims().Find(uid);
}

CpuSet SimulatedNode::Claimed() const {
  return manager_->held_claims().Cpus();
}

void SimulatedNode::Stop(const ContainerId& id) {
  runtime_.SetExited(id);
  manager_->ContainerStopped(id);
  Settle();
}

void SimulatedNode::Remove(const ContainerId& id) {
  runtime_.Remove(id);
  manager_->ContainerRemoved(id);
  Settle();
  keys_.erase(id);
  wanted_.erase(id);
}

void SimulatedNode::Wait(std::chrono::milliseconds time) {
  while (!wanted_.empty() && time.count() > 0) {
    const auto slice = std::min(time, SampleTime(usage_.interval, sampled_));
    Sample(slice);
    sampled_ += slice;
    time -= slice;
  }
  clock_.Advance(time);
  Settle();
}

void SimulatedNode::Configure(const UsageConfig& config) {
  usage_ = config;
  by_use_->Configure(config);
}

void SimulatedNode::SetUse(const ContainerId& id, double wanted) {
  if (keys_.contains(id)) wanted_[id] = wanted;
}

// Reports how much CPU containers get while time passes, in the form of the daemon's measurements.
void SimulatedNode::Sample(std::chrono::milliseconds time) {
  const UsageFigures figures = FiguresOf(time);
  clock_.Advance(time);
  Settle();
  by_use_->Observe(figures);
  Settle();
}

UsageFigures SimulatedNode::FiguresOf(std::chrono::milliseconds time) const {
  policy::MeasuredUse wanted{.over = time};
  std::map<std::string, ContainerUseWanted> uses;
  manager_->snapshot().ForEachContainer([&](const Pod&, const Container& container) {
    const auto found = wanted_.find(container.id);
    if (found == wanted_.end()) return;
    const double limit = static_cast<double>(container.requirements.cpu_limit.value) / 1000;
    const double most = limit > 0 ? std::min(found->second, limit) : found->second;
    wanted.containers[container.key] = {.cpus = most};
    uses[std::string(container.id.value())] = {
        .wanted = most, .own = static_cast<double>(container.placement.exclusive.size())};
  });
  const policy::PoolLoads loads = manager_->policy_changes().Loads(wanted);
  UsageFigures figures{.since = clock_.Now(),
                       .until = clock_.Now() + time,
                       .from = clock_.Steady(),
                       .at = clock_.Steady() + time,
                       .complete = true};
  for (UsageSubject& subject : UsageSubjects(manager_.get())) {
    const ContainerUseWanted& use = uses[subject.id];
    const double own = std::min(use.wanted, use.own);
    const auto pool = loads.find(subject.pool);
    // All containers of a pool lack the same part of the shared CPUs that they want.
    const double lacking = pool == loads.end() || pool->second.wanted <= 0
                               ? 0
                               : pool->second.lacking / pool->second.wanted;
    figures.containers.push_back({.subject = std::move(subject),
                                  .cpu_used = own + (use.wanted - own) * (1 - lacking),
                                  .waited_percent = use.wanted > own ? 100 * lacking : 0});
  }
  return figures;
}

void SimulatedNode::Restart(std::unique_ptr<Policy> policy, RuntimesConfig runtimes) {
  runtimes_ = std::move(runtimes);
  state_->Flush(kFlushTime);
  manager_.reset();
  state_.reset();
  StartManager(std::move(policy));
}

Status SimulatedNode::SetPolicy(std::unique_ptr<Policy> policy) {
  std::optional<Status> result;
  manager_->policy_changes().Set(std::move(policy),
                                 [&result](const Status& status) { result = status; });
  Settle([&result] { return result.has_value(); });
  return result.value_or(Internal("the change of the policy did not end"));
}

StatusOr<SimulatedNode::Moves> SimulatedNode::Rebalance(bool apply) {
  StatusOr<Moves> moves = apply ? manager_->policy_changes().Rebalance()
                                : manager_->policy_changes().PreviewRebalance();
  Settle();
  return moves;
}

StatusOr<UseRound> SimulatedNode::RebalanceByUse(bool apply, std::optional<int> most_moves) {
  StatusOr<UseRound> round = apply ? by_use_->Apply(most_moves) : by_use_->Preview(most_moves);
  Settle();
  return round;
}

std::vector<std::string> SimulatedNode::Explain(const ContainerId& id) const {
  const auto found = keys_.find(id);
  if (found == keys_.end()) return {};
  return policy().Explain(found->second);
}

std::vector<Overhead> SimulatedNode::Overheads() const {
  std::map<PodSandboxId, Overhead> pods;
  const Snapshot& snapshot = manager_->snapshot();
  snapshot.ForEachContainer([&](const Pod& pod, const Container& container) {
    const Overhead overhead = snapshot.OverheadOf(pod);
    if (container.state != ContainerState::kExited && !overhead.empty())
      pods.emplace(pod.id, overhead);
  });
  std::vector<Overhead> overheads;
  overheads.reserve(pods.size());
  for (const auto& [id, overhead] : pods)
    overheads.push_back(overhead);
  return overheads;
}

CpuSet SimulatedNode::Reserved() const {
  CpuSet reserved;
  for (const Zone& zone : policy().Zones(manager_->snapshot())) {
    if (IsReservedPool(zone.name)) reserved |= zone.shared;
  }
  return reserved;
}

RunningContainer SimulatedNode::AsRunning(const RuntimeContainer& held) const {
  static const Placement kNone;
  const Pod* const pod = runtime_.FindPod(held.pod_id);
  const auto key = keys_.find(held.id);
  const Container* const known =
      key == keys_.end() ? nullptr : manager_->snapshot().FindContainer(key->second);
  const Placement& placement = known == nullptr ? kNone : known->placement;
  return {{.cpus = held.resources.cpuset_cpus.value_or(""),
           .mems = held.resources.cpuset_mems.value_or(""),
           .exclusive = placement.exclusive.ToString(),
           .shares = held.resources.cpu_shares.value_or(0),
           .quota = QuotaOrNone(held.resources.cpu_quota),
           .qos = pod == nullptr ? "" : std::string(ToString(pod->qos)),
           .cpu_limit = known == nullptr ? MilliCpu() : known->requirements.cpu_limit,
           .memory_limit = Bytes{held.resources.memory_limit.value_or(0)},
           .pool = placement.pool,
           .reason = placement.reason},
          held.id,
          pod == nullptr ? "" : fmt::format("{}/{}", pod->namespace_name, pod->name),
          held.name};
}

std::optional<RunningContainer> SimulatedNode::FindRunning(const ContainerId& id) const {
  const RuntimeContainer* const held = runtime_.Find(id);
  if (held == nullptr || held->state == ContainerState::kExited) return std::nullopt;
  return AsRunning(*held);
}

std::vector<RunningContainer> SimulatedNode::Running() const {
  std::vector<RunningContainer> running;
  for (const auto& [number, held] : runtime_.containers()) {
    if (held.state != ContainerState::kExited) running.push_back(AsRunning(held));
  }
  return running;
}

std::vector<RunningContainer> SimulatedNode::Running(const PodSandboxId& pod) const {
  std::vector<RunningContainer> running;
  for (const ContainerId& id : runtime_.ContainersOf(pod)) {
    if (auto container = FindRunning(id)) running.push_back(*std::move(container));
  }
  return running;
}

}  // namespace resmgr
