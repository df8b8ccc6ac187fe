// SPDX-License-Identifier: Apache-2.0
#include "pkg/simulator/simulator.h"

#include <algorithm>
#include <utility>

#include "pkg/model/requirements.h"
#include "pkg/policy/use_balance.h"

namespace resmgr {

namespace {

Bytes MemoryOf(const Machine& machine) {
  Bytes sum;
  for (const NumaNode& node : machine.nodes())
    sum = sum + node.memory;
  return sum;
}

Bytes LeastMemoryRequest(const std::vector<Manifest::Container>& containers) {
  Bytes least = containers.front().requirements.memory_request;
  for (const Manifest::Container& container : containers)
    least = std::min(least, container.requirements.memory_request);
  return least;
}

// The resources of a pod as a whole, which has no OOM score.
LinuxResources PodResources(const Requirements& needs) {
  if (needs == Requirements()) return {};
  LinuxResources resources = KubeletResources(needs, QosClass::kBurstable, {}, {});
  resources.oom_score_adj.reset();
  return resources;
}

}  // namespace

Simulator::Simulator(Options options)
    : options_(std::move(options)),
      config_(options_.config),
      memory_capacity_(MemoryOf(options_.machine)) {}

StatusOr<std::unique_ptr<Simulator>> Simulator::Create(Options options) {
  std::unique_ptr<Simulator> simulator(new Simulator(std::move(options)));
  RESMGR_ASSIGN_OR_RETURN(std::unique_ptr<Policy> policy,
                          simulator->options_.make_policy(simulator->config_));
  simulator->node_ = std::make_unique<SimulatedNode>(simulator->options_.machine, std::move(policy),
                                                     simulator->config_.runtimes);
  simulator->node_->Configure(simulator->config_.usage);
  simulator->SetClasses();
  return simulator;
}

void Simulator::SetClasses() {
  if (options_.classes) node_->SetClasses(options_.classes(config_));
}

Status Simulator::Check(const Scenario& scenario) const {
  for (const Step& step : scenario) {
    const auto* const change = std::get_if<ConfigStep>(&step.action);
    if (change == nullptr) continue;
    RESMGR_RETURN_IF_ERROR(options_.read_config(change->config).status());
  }
  return OkStatus();
}

std::vector<StepEffect> Simulator::Run(const Step& step) {
  ++step_;
  effects_.clear();
  std::visit([this](const auto& action) { Do(action); }, step.action);
  return std::move(effects_);
}

void Simulator::Add(std::string op, std::string pod, std::string container, const ContainerId& id,
                    const Status& status) {
  StepEffect effect;
  effect.step = step_;
  effect.op = std::move(op);
  effect.pod = std::move(pod);
  effect.container = std::move(container);
  effect.error = Message(status);
  if (const auto own = node_->FindRunning(id)) {
    static_cast<SimulatedPlace&>(effect) = *own;
    effect.classes = node_->ClassesOf(id);
    if (options_.explain && (effect.op == "create" || effect.op == "resize")) {
      effect.candidates = node_->Explain(id);
    }
  }
  // Looks only at changed containers, so that an effect does not cost more the more containers
  // there are.
  for (const ContainerId& touched : node_->TakeTouched()) {
    const auto now = node_->FindRunning(touched);
    if (!now) {
      before_.erase(touched);
      continue;
    }
    const auto [entry, is_new] = before_.try_emplace(touched);
    Before& before = entry->second;
    const bool moved = before.cpus != now->cpus || before.mems != now->mems;
    if (!is_new && moved && touched != id) {
      effect.changed.push_back({.pod = now->pod,
                                .container = now->name,
                                .old_cpus = before.cpus,
                                .old_mems = before.mems,
                                .cpus = now->cpus,
                                .mems = now->mems,
                                .exclusive = now->exclusive,
                                .had_own = before.had_own});
    }
    before = {.cpus = now->cpus, .mems = now->mems, .had_own = !now->exclusive.empty()};
  }
  effects_.push_back(std::move(effect));
}

Pod Simulator::SandboxOf(const Manifest& manifest) {
  const uint64_t number = ++last_id_;
  Pod pod;
  pod.id = PodSandboxId(fmt::format("sandbox-{}", number));
  pod.uid = PodUid(manifest.uid.empty() ? fmt::format("00000000-0000-4000-8000-{:012}", number)
                                        : manifest.uid);
  pod.name = manifest.name;
  pod.namespace_name = manifest.namespace_name;
  pod.qos = manifest.Qos();
  pod.cgroup_parent = CgroupParentOf(pod.qos, pod.uid);
  pod.runtime_handler = manifest.runtime_handler;
  pod.labels = manifest.labels;
  pod.labels.Set("io.kubernetes.pod.name", pod.name);
  pod.labels.Set("io.kubernetes.pod.namespace", pod.namespace_name);
  pod.labels.Set("io.kubernetes.pod.uid", pod.uid.value());
  pod.annotations = manifest.annotations;
  pod.overhead = PodResources(manifest.overhead);
  pod.resources = PodResources(manifest.Whole());
  return pod;
}

LinuxResources Simulator::ResourcesOf(const Manifest& manifest, const Requirements& requirements,
                                      bool sidecar) const {
  Requirements needs = requirements;
  // The pod's own limits apply to a container without any.
  if (needs.cpu_limit.value == 0) needs.cpu_limit = manifest.pod_level.cpu_limit;
  if (needs.memory_limit.value == 0) needs.memory_limit = manifest.pod_level.memory_limit;
  Bytes oom_request = needs.memory_request;
  if (sidecar) oom_request = std::max(oom_request, LeastMemoryRequest(manifest.containers));
  return KubeletResources(needs, manifest.Qos(), oom_request, memory_capacity_);
}

void Simulator::Do(const Manifest& manifest) {
  const std::string name = manifest.FullName();
  if (const Status prepared = PrepareFor(manifest); !prepared.ok()) {
    return Add("create", name, "", {}, Annotate(prepared, "the pod waits for a claim"));
  }
  const auto [entry, is_new] = pods_.try_emplace(name);
  RunningPod& pod = entry->second;
  if (is_new) {
    pod.manifest = manifest;
    Pod sandbox = SandboxOf(manifest);
    pod.id = sandbox.id;
    node_->RunPod(std::move(sandbox));
  } else if (pod.members.size() ==
             pod.manifest.init_containers.size() + pod.manifest.containers.size()) {
    return Add("create", name, "", {}, AlreadyExists("pod {} exists already", name));
  }
  LaunchMissing(pod);
}

void Simulator::LaunchMissing(RunningPod& pod) {
  for (const Manifest::Container& container : pod.manifest.init_containers) {
    if (pod.members.contains(container.name)) continue;
    if (!Launch(pod, container)) return;
    if (container.sidecar) continue;
    const ContainerId id = pod.members[container.name].id;
    node_->Stop(id);
    Add("exit", pod.manifest.FullName(), container.name, id, OkStatus());
  }
  for (const Manifest::Container& container : pod.manifest.containers) {
    if (!pod.members.contains(container.name)) Launch(pod, container);
  }
}

bool Simulator::Launch(RunningPod& pod, const Manifest::Container& container) {
  const std::string pod_name = pod.manifest.FullName();
  CreateRequest request;
  request.pod_id = pod.id;
  request.name = container.name;
  request.attempt = pod.attempts[container.name];
  request.labels = {{"io.kubernetes.container.name", container.name}};
  request.has_resources = true;
  request.resources = ResourcesOf(pod.manifest, container.requirements, container.sidecar);
  request.resources.hugepage_limits = container.hugepage_limits;
  request.pod_resources = PodResources(pod.manifest.Whole());
  const ContainerId id(fmt::format("container-{}", ++last_id_));
  const Status created = node_->Create(request, id, CarriedBy(container));
  Add("create", pod_name, container.name, id, created);
  if (!created.ok()) return false;
  ++pod.attempts[container.name];
  pod.members[container.name] = {.id = id, .sidecar = container.sidecar};
  pod.order.push_back(container.name);
  const Status started = node_->Start(id);
  if (!started.ok()) Add("start", pod_name, container.name, id, started);
  return started.ok();
}

void Simulator::Do(const DeleteStep& step) {
  const std::string name = step.target.PodName();
  const auto found = pods_.find(name);
  if (found == pods_.end()) {
    return Add("delete", name, step.target.container, {}, NotFound("there is no pod {}", name));
  }
  RunningPod& pod = found->second;
  if (!step.target.container.empty()) {
    if (!pod.members.contains(step.target.container)) {
      return Add("delete", name, step.target.container, {},
                 NotFound("pod {} has no container {}", name, step.target.container));
    }
    return DeleteContainer(pod, step.target.container);
  }
  // Sidecars end last, in the reverse order of their start.
  std::vector<std::string> order = pod.order;
  const auto sidecars = std::stable_partition(
      order.begin(), order.end(), [&](const auto& key) { return !pod.members[key].sidecar; });
  std::reverse(sidecars, order.end());
  for (const std::string& container : order)
    DeleteContainer(pod, container);
  node_->StopPod(pod.id);
  node_->RemovePod(pod.id);
  const Manifest ended = std::move(pod.manifest);
  pods_.erase(found);
  Unprepare(ended);
}

void Simulator::DeleteContainer(RunningPod& pod, const std::string& name) {
  const ContainerId id = pod.members[name].id;
  const bool running = node_->FindRunning(id).has_value();
  node_->Stop(id);
  node_->Remove(id);
  pod.members.erase(name);
  std::erase(pod.order, name);
  // There is no effect if the container has ended: it has released everything.
  if (!running) return;
  Add("delete", pod.manifest.FullName(), name, id, OkStatus());
}

StatusOr<Manifest> Simulator::Resized(const RunningPod& pod, const ResizeStep& step) const {
  const std::string name = pod.manifest.FullName();
  const auto member = pod.members.find(step.target.container);
  if (member == pod.members.end() || !node_->FindRunning(member->second.id)) {
    return NotFound("pod {} has no running container {}", name, step.target.container);
  }
  Manifest after = pod.manifest;
  Requirements& needs = after.Find(step.target.container)->requirements;
  needs = Changed(needs, step.change);
  if ((needs.cpu_limit.value > 0 && needs.cpu_request > needs.cpu_limit) ||
      (needs.memory_limit.value > 0 && needs.memory_request > needs.memory_limit)) {
    return InvalidArgument("{}/{}: more would be requested than the limit allows", name,
                           step.target.container);
  }
  if (after.Qos() == pod.manifest.Qos()) return after;
  return InvalidArgument("{}: a resize must not change the QoS class {} of the pod to {}", name,
                         ToString(pod.manifest.Qos()), ToString(after.Qos()));
}

void Simulator::Do(const ResizeStep& step) {
  const std::string name = step.target.PodName();
  const auto found = pods_.find(name);
  if (found == pods_.end()) {
    return Add("resize", name, step.target.container, {}, NotFound("there is no pod {}", name));
  }
  RunningPod& pod = found->second;
  auto after = Resized(pod, step);
  if (!after.ok()) return Add("resize", name, step.target.container, {}, after.status());
  const Member& member = pod.members[step.target.container];
  const Requirements& needs = after->Find(step.target.container)->requirements;
  const Status status = node_->Update(member.id, ResourcesOf(*after, needs, member.sidecar));
  if (status.ok()) pod.manifest = *std::move(after);
  Add("resize", name, step.target.container, member.id, status);
}

void Simulator::Do(const RestartStep&) {
  auto policy = options_.make_policy(config_);
  const Status status = policy.status();
  // Never fails, since a policy was created from the same configuration before.
  if (status.ok()) node_->Restart(*std::move(policy), config_.runtimes);
  Add("restart", "", "", {}, status);
}

void Simulator::Do(const WaitStep& step) {
  Wait("wait", step.time, true);
}

void Simulator::Wait(const std::string& op, std::chrono::milliseconds time, bool always) {
  const auto what = [this] {
    const auto& rounds = node_->rounds();
    return rounds.empty() ? std::pair(UseRound::State::kPreview, std::string())
                          : std::pair(rounds.back().state, rounds.back().note);
  };
  const auto before = what();
  node_->Wait(time);
  const auto after = what();
  if (!always && before == after) return;
  Add(op, "", "", {}, OkStatus());
  if (before != after)
    effects_.back().reason = fmt::format("by use, {}: {}", ToString(after.first), after.second);
}

void Simulator::Do(const UseStep& step) {
  for (const UseStep::Entry& entry : step.entries) {
    const std::string name = entry.target.PodName();
    const auto pod = pods_.find(name);
    bool found = false;
    if (pod != pods_.end()) {
      for (const auto& [container, member] : pod->second.members) {
        if (!entry.target.container.empty() && container != entry.target.container) continue;
        node_->SetUse(member.id, entry.wanted);
        found = true;
      }
    }
    Add("use", name, entry.target.container, {},
        found ? OkStatus() : NotFound("there is no such container"));
  }
}

// The recorded use and pressure tell how many CPUs a container wants. It may get another amount,
// since it may have another place here.
void Simulator::Do(const RecordedUse& step) {
  if (step.at > recorded_at_) Wait("use", step.at - recorded_at_, false);
  recorded_at_ = step.at;
  for (const auto& [id, use] : step.use)
    node_->SetUse(id, policy::WantedCpus(use, 0, 0));
}

void Simulator::Do(const ConfigStep& step) {
  auto config = options_.read_config(step.config);
  Status status = config.status();
  if (status.ok()) {
    auto policy = options_.make_policy(*config);
    status = policy.ok() ? node_->SetPolicy(*std::move(policy)) : policy.status();
  }
  if (status.ok()) {
    config_ = *std::move(config);
    node_->Configure(config_.usage);
    SetClasses();
  }
  Add("config", "", "", {}, status);
}

// A preview reports moves without carrying them out.
void Simulator::Do(const RebalanceStep& step) {
  if (step.by_use) return DoByUse(step);
  const auto moves = node_->Rebalance(step.apply);
  Add("rebalance", "", "", {}, moves.status());
  if (!step.apply && moves.ok()) TellPreview(*moves);
}

void Simulator::DoByUse(const RebalanceStep& step) {
  const auto round = node_->RebalanceByUse(step.apply, step.moves);
  Add("rebalance", "", "", {}, round.status());
  if (!round.ok()) return;
  std::string moves;
  for (const UseRound::Move& move : round->moves)
    moves += "; " + move.text;
  const std::string note = round->note.empty() ? "" : "; " + round->note;
  if (!step.apply) TellPreview(round->placements);
  effects_.back().reason = fmt::format("{}{:.1f} CPUs are lacking, predicted {:.1f}{}{}",
                                       step.apply ? "" : "a preview: nothing has moved; ",
                                       round->lacking, round->lacking_predicted, moves, note);
}

void Simulator::TellPreview(const std::vector<ResourceManager::Move>& moves) {
  StepEffect& effect = effects_.back();
  effect.reason = "a preview: nothing has moved";
  for (const ResourceManager::Move& move : moves) {
    const size_t slash = move.container.rfind('/');
    const auto list = [](const auto& set) { return set ? set->ToString() : std::string(); };
    effect.changed.push_back({.pod = move.container.substr(0, slash),
                              .container = move.container.substr(slash + 1),
                              .old_cpus = list(move.from.cpus),
                              .old_mems = list(move.from.mems),
                              .cpus = list(move.to.cpus),
                              .mems = list(move.to.mems),
                              .exclusive = move.to.exclusive.ToString(),
                              .had_own = !move.from.exclusive.empty()});
  }
}

void Simulator::Do(const RecordedStep& step) {
  using Call = RecordedStep::Call;
  switch (step.call) {
    case Call::kRunPod:
      return node_->RunPod(step.pod);
    case Call::kUpdatePod:
      return node_->UpdatePod(step.pod.id, step.pod.overhead, step.pod.resources);
    case Call::kStopPod:
    case Call::kRemovePod: {
      const std::vector<RunningContainer> before = node_->Running(step.pod.id);
      step.call == Call::kStopPod ? node_->StopPod(step.pod.id) : node_->RemovePod(step.pod.id);
      for (const RunningContainer& container : before) {
        if (!node_->FindRunning(container.id)) {
          Add("delete", container.pod, container.name, container.id, OkStatus());
        }
      }
      return;
    }
    case Call::kCreate: {
      const Status status = node_->Create(step.request, step.container);
      const auto created = node_->FindRunning(step.container);
      const Pod& pod = step.pod;
      return Add("create",
                 created ? created->pod : fmt::format("{}/{}", pod.namespace_name, pod.name),
                 step.request.name, step.container, status);
    }
    case Call::kStart:
    case Call::kStop:
    case Call::kRemove:
    case Call::kUpdate:
      break;
  }
  // A container that was refused here has no steps, and one that has ended can only be removed.
  if (const auto container = node_->FindRunning(step.container)) return Replay(step, *container);
  if (step.call == Call::kRemove) node_->Remove(step.container);
}

void Simulator::Replay(const RecordedStep& step, const RunningContainer& container) {
  using Call = RecordedStep::Call;
  Status status;
  std::string op;
  if (step.call == Call::kStart) {
    status = node_->Start(step.container);
    if (status.ok()) return;
    op = "start";
  } else if (step.call == Call::kUpdate) {
    status = node_->Update(step.container, step.resources);
    op = "resize";
  } else if (step.call == Call::kStop) {
    node_->Stop(step.container);
    op = "exit";
  } else {
    node_->Remove(step.container);
    op = "delete";
  }
  Add(std::move(op), container.pod, container.name, container.id, status);
}

}  // namespace resmgr
