// SPDX-License-Identifier: Apache-2.0
#include "test/integration/brain/world.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include <gtest/gtest.h>

#include "pkg/config/yaml_reader.h"
#include "pkg/kube/cpu_arithmetic.h"

namespace resmgr::test {
namespace {

TestNode::MakePolicy PolicyOf(const World::Setup& setup) {
  return [create = setup.factory.create, reserved = setup.reserved,
          section = setup.section](const Machine& machine) {
    const StatusOr<ConfigNode> config = ParseYaml(section, "test.yaml");
    EXPECT_TRUE(config.ok()) << config.status();
    StatusOr<std::unique_ptr<Policy>> policy = create({.machine = machine,
                                                       .available = machine.allowed(),
                                                       .reserved = reserved,
                                                       .section = &*config});
    EXPECT_TRUE(policy.ok()) << policy.status();
    return *std::move(policy);
  };
}

ResourceManager::Options OptionsWith(Clock& clock) {
  ResourceManager::Options options = TestNode::FastOptions();
  options.clock = &clock;
  return options;
}

template <typename T>
T TakeAt(std::vector<T>& from, size_t index) {
  const auto at = from.begin() + static_cast<std::ptrdiff_t>(index);
  T taken = std::move(*at);
  from.erase(at);
  return taken;
}

void ExpectRefusal(const Status& status) {
  EXPECT_TRUE(status.code() == StatusCode::kResourceExhausted ||
              status.code() == StatusCode::kInvalidArgument)
      << status;
}

}  // namespace

World::World(const Setup& setup, uint64_t seed)
    : random_(seed),
      machine_(setup.machine),
      reserved_(setup.reserved),
      keeps_state_(setup.keeps_state),
      disk_(seed),
      files_(disk_),
      node_(setup.machine, PolicyOf(setup), OptionsWith(clock_)) {
  if (keeps_state_) node_.KeepState(files_);
}

// Not std::uniform_int_distribution: its results differ between libraries.
int64_t World::Number(int64_t first, int64_t last) {
  const uint64_t range = static_cast<uint64_t>(last - first) + 1;
  return first + static_cast<int64_t>(random_() % range);
}

int64_t World::SomeRequest() {
  const int cpus = machine_.online().size();
  const int64_t whole = 1000 * Number(1, Chance(20) ? cpus : std::max(1, cpus / 4));
  return Chance(80) ? whole : whole + Number(1, 999);
}

RuntimeContainer* World::SomeContainer(ContainerState state) {
  std::vector<RuntimeContainer*> candidates;
  for (RuntimeContainer& container : node_.runtime.held.containers) {
    if (container.state == state) candidates.push_back(&container);
  }
  if (candidates.empty()) return nullptr;
  return candidates[static_cast<size_t>(Number(0, static_cast<int64_t>(candidates.size()) - 1))];
}

std::string World::Journal() {
  std::string text;
  for (const std::string& event : journal_)
    text += event + "\n";
  return text + Describe();
}

std::string World::Describe() {
  std::string text;
  node_.manager().snapshot().ForEachContainer([&](const Pod& pod, const Container& container) {
    const RuntimeContainer* const held = node_.runtime.Find(container.id);
    const auto owned = owned_.find(container.id);
    text +=
        fmt::format("{} {} {} {}m: placed {} exclusive {} ({}); in force {} shares {}; owns {}\n",
                    container.name, container.id.value(), ToString(pod.qos),
                    container.requirements.cpu_request.value,
                    container.placement.cpus.value_or(CpuSet()).ToString(),
                    container.placement.exclusive.ToString(), container.placement.reason,
                    held == nullptr ? "nothing" : node_.runtime.CpusOf(container.id),
                    held == nullptr ? 0 : held->resources.cpu_shares.value_or(0),
                    owned == owned_.end() ? "nothing" : owned->second.cpus.ToString());
  });
  return text;
}

void World::Note(std::string event) {
  constexpr size_t kKept = 120;
  const auto keep = [this](std::string line) {
    journal_.push_back(std::move(line));
    if (journal_.size() > kKept) journal_.pop_front();
  };
  for (; noted_updates_ < history().size(); ++noted_updates_)
    keep("  asked: " + history()[noted_updates_]);
  keep(std::move(event));
}

void World::Step() {
  Act();
  if (!keeps_state_) return;
  node_.FlushState();
  if (!files_.stopping() && Chance(2)) {
    Note("the disk stops");
    files_.StopAfter(static_cast<int>(Number(0, 3)));
  }
}

void World::Act() {
  const int64_t what = Number(1, 100);
  if (what <= 6) return AddSandbox();
  if (what <= 20) return BeginCreation();
  if (what <= 24) return BeginAttempt();
  if (what <= 38) {
    if (!creations_.empty()) EndCreation(0, Chance(85));
    return;
  }
  if (what <= 50) return BeginStart();
  if (what <= 60) {
    if (!starts_.empty()) EndStart(static_cast<size_t>(Number(0, std::ssize(starts_) - 1)));
    return;
  }
  if (what <= 61) return WithdrawStart();
  if (what <= 67) return BeginResize();
  if (what <= 73) {
    if (!resizes_.empty()) EndResize(static_cast<size_t>(Number(0, std::ssize(resizes_) - 1)));
    return;
  }
  if (what <= 77) return StopSome();
  if (what <= 80) return RemoveSome();
  if (what <= 82) return CrashSome();
  if (what <= 83) {
    if (!sandboxes_.empty()) {
      RemoveSandbox(static_cast<size_t>(Number(0, std::ssize(sandboxes_) - 1)));
    }
    return;
  }
  if (what <= 85) {
    clock_.Advance(std::chrono::seconds(Number(1, 40)));
    return;
  }
  if (what <= 98) return AnswerSome();
  if (what <= 99) return LoseConnection();
  RestartDaemon();
}

void World::AddSandbox() {
  const QosClass qos = Chance(60)   ? QosClass::kGuaranteed
                       : Chance(50) ? QosClass::kBurstable
                                    : QosClass::kBestEffort;
  sandboxes_.push_back({node_.AddPod(fmt::format("pod{}", ++names_), qos), qos});
  Pod& pod = node_.runtime.held.pods.back();
  if (Chance(5)) pod.namespace_name = "kube-system";
  for (const std::string_view key : {"prefer-shared-cpus", "prefer-isolated-cpus",
                                     "prefer-reserved-cpus", "require-isolated-cpus"}) {
    if (!Chance(4)) continue;
    pod.annotations[fmt::format("{}.resource-policy.nri.io", key)] = Chance(50) ? "true" : "false";
  }
  if (Chance(15)) pod.annotations["cold-start.resource-policy.nri.io"] = "duration: 60s";
  node_.manager().PodCreated(pod);
}

void World::BeginCreation() {
  if (sandboxes_.empty()) return;
  const Sandbox& sandbox = sandboxes_[static_cast<size_t>(Number(0, std::ssize(sandboxes_) - 1))];
  const int64_t request = sandbox.qos == QosClass::kBestEffort ? 0 : SomeRequest();
  CreateRequest create = TestNode::Request(sandbox.id, fmt::format("c{}", ++names_), request);
  create.has_linux = Chance(97);
  if (!create.has_linux) create.resources = {};
  Admit(create);
}

// The next attempt of a container that is dead.
void World::BeginAttempt() {
  const RuntimeContainer* const dead = SomeContainer(ContainerState::kExited);
  if (dead == nullptr) return;
  const std::string name = dead->name;
  uint32_t attempt = 0;
  for (const RuntimeContainer& container : node_.runtime.held.containers) {
    if (container.name != name) continue;
    if (container.state != ContainerState::kExited) return;
    attempt = std::max(attempt, container.attempt + 1);
  }
  for (const Creation& creation : creations_) {
    if (creation.request.name == name) return;
  }
  // The same request again: shares and quota may both have been the policy's, but never at once.
  const LinuxResources& last = dead->resources;
  const MilliCpu same = std::max(MilliCpuFromShares(last.cpu_shares.value_or(0)),
                                 MilliCpuFromQuota(last.cpu_quota.value_or(0), kDefaultCpuPeriod));
  const int64_t request = Chance(80) ? same.value : SomeRequest();
  Admit(TestNode::Request(dead->pod_id, name, request, attempt));
}

void World::Admit(const CreateRequest& request) {
  const StatusOr<Admission> admission = node_.manager().AdmitCreate(request);
  Note(fmt::format("create {} attempt {} shares {}: {}", request.name, request.attempt,
                   request.resources.cpu_shares.value_or(0),
                   admission.ok() ? admission->adjustment.cpuset_cpus.value_or("left alone")
                                  : std::string(Message(admission.status()))));
  if (admission.ok()) {
    creations_.push_back({request, *admission});
  } else {
    ExpectRefusal(admission.status());
  }
}

void World::EndCreation(size_t index, bool success) {
  const Creation creation = TakeAt(creations_, index);
  const bool sandbox_lives = std::any_of(
      sandboxes_.begin(), sandboxes_.end(),
      [&creation](const Sandbox& sandbox) { return sandbox.id == creation.request.pod_id; });
  Note(fmt::format("created {}: {}", creation.request.name, success && sandbox_lives));
  if (success && sandbox_lives) {
    node_.Created(creation.request, creation.admission);
  } else {
    node_.manager().CreateFailed(creation.admission.key);
  }
}

void World::BeginStart() {
  const RuntimeContainer* const created = SomeContainer(ContainerState::kCreated);
  if (created == nullptr) return;
  for (const auto& start : starts_) {
    if (start->id == created->id) return;
  }
  starts_.push_back(std::make_unique<Start>());
  Start& start = *starts_.back();
  start.id = created->id;
  Note(fmt::format("start {}", start.id.value()));
  start.wait = node_.manager().AdmitStart(start.id, [this, &start](const Status& status) {
    start.decided = status;
    if (status.ok()) node_.runtime.BeginStart(start.id);
    const Container* const container = node_.Known(start.id);
    if (container != nullptr) start.exclusive = container->placement.exclusive;
  });
}

// The runtime's answer to a start that was let through.
void World::EndStart(size_t index) {
  if (!starts_[index]->decided.has_value()) return;
  const std::unique_ptr<Start> start = TakeAt(starts_, index);
  RuntimeContainer* const container = node_.runtime.Find(start->id);
  Note(fmt::format("start of {} was decided: {}", start->id.value(),
                   resmgr::Describe(*start->decided)));
  if (!start->decided->ok()) return;
  // One of before is still being worked on.
  const bool busy = std::find(abandoned_starts_.begin(), abandoned_starts_.end(), start->id) !=
                    abandoned_starts_.end();
  if (container != nullptr && container->state == ContainerState::kCreated && !busy && Chance(95)) {
    ++started_;
    Note("  and started");
    node_.Started(start->id);
    if (!container->resources.cpuset_cpus) return;
    const Container* const known = node_.Known(start->id);
    if (known == nullptr) return;
    const CpuSet own = InForce(*container) & start->exclusive & known->placement.exclusive;
    if (!own.empty()) owned_[start->id] = {own, node_.runtime.Applied(start->id)};
  } else {
    node_.manager().StartFailed(start->id);
  }
}

void World::AbandonStart(const Start& start) {
  const bool under_way = start.decided.has_value() && start.decided->ok();
  const RuntimeContainer* const container = node_.runtime.Find(start.id);
  if (!under_way || container == nullptr || container->state != ContainerState::kCreated) return;
  abandoned_starts_.push_back(start.id);
  may_start_.insert(start.id);
  if (Chance(40)) EndAbandonedStart(abandoned_starts_.size() - 1);
}

// It runs, it could not be started, or the start never got there.
void World::EndAbandonedStart(size_t index) {
  const ContainerId id = TakeAt(abandoned_starts_, index);
  RuntimeContainer* const container = node_.runtime.Find(id);
  if (container == nullptr || container->state != ContainerState::kCreated) return;
  const int64_t what = Number(1, 100);
  if (what <= 60) {
    Note(fmt::format("{} was started after all", id.value()));
    node_.runtime.EndStart(id);
  } else if (what <= 80) {
    Note(fmt::format("{} could not be started", id.value()));
    container->state = ContainerState::kExited;
  } else {
    Note(fmt::format("the start of {} is lost", id.value()));
  }
}

// containerd takes back what it reports when an update fails, but not what runc did by then; and
// who is killed in the middle has noted what runc was not told. Without notes of our own that
// cannot be known.
void World::ApplySomehow(const ContainerId& id, const Adjustment& adjustment) {
  const RuntimeContainer* const container = node_.runtime.Find(id);
  const bool runs = container != nullptr && container->state == ContainerState::kRunning;
  switch (Number(0, keeps_state_ && runs ? 3 : 1)) {
    case 0:
      return;
    case 1:
      return node_.runtime.Apply(id, adjustment);
    case 2:
      return node_.runtime.ApplyPart(id, adjustment, FakeRuntimeClient::Part::kReport);
    default:
      return node_.runtime.ApplyPart(id, adjustment, FakeRuntimeClient::Part::kForce);
  }
}

void World::WithdrawStart() {
  std::erase_if(starts_, [](const auto& start) { return !start->decided.has_value(); });
}

void World::BeginResize() {
  const RuntimeContainer* const container =
      SomeContainer(Chance(80) ? ContainerState::kRunning : ContainerState::kCreated);
  if (container == nullptr) return;
  // Of one container several at once, of different ones not: when one of those fails, two
  // containers may have to change places, and then nobody can leave before the other comes.
  if (!resizes_.empty() && resizes_.front().id != container->id) return;
  const LinuxResources changes = TestNode::Resources(SomeRequest());
  const StatusOr<Admission> admission = node_.manager().AdmitUpdate(container->id, changes);
  Note(fmt::format("resize {} to shares {}: {}", container->id.value(), *changes.cpu_shares,
                   admission.ok() ? admission->adjustment.cpuset_cpus.value_or("left alone")
                                  : std::string(Message(admission.status()))));
  if (admission.ok()) {
    resizes_.push_back({container->id, changes, *admission, false});
  } else {
    ExpectRefusal(admission.status());
  }
}

// First it takes effect, then the answer comes; a failure may have taken effect or not.
void World::EndResize(size_t index) {
  Resize& resize = resizes_[index];
  const bool success = Chance(80);
  if (!resize.applied && (success || Chance(30)) && node_.runtime.Find(resize.id) != nullptr) {
    ApplyResize(resize);
    if (Chance(50)) return;
  }
  const Resize ended = TakeAt(resizes_, index);
  Note(fmt::format("resize of {} ended: {}", ended.id.value(), success && ended.applied));
  if (success && ended.applied) {
    node_.manager().UpdateSucceeded(ended.admission);
  } else {
    node_.manager().UpdateFailed(ended.admission);
  }
}

void World::ApplyResize(Resize& resize) {
  if (std::exchange(resize.applied, true)) return;
  Note(fmt::format("resize of {} takes effect", resize.id.value()));
  node_.runtime.Apply(resize.id, resize.Carried());
}

// What is appended by the policy overrides what the kubelet asks for.
Adjustment World::Resize::Carried() const {
  Adjustment carried = admission.adjustment;
  if (!carried.cpu_shares) carried.cpu_shares = changes.cpu_shares;
  if (!carried.cpu_quota) carried.cpu_quota = changes.cpu_quota;
  return carried;
}

void World::StopSome() {
  if (const RuntimeContainer* const running = SomeContainer(ContainerState::kRunning)) {
    Note(fmt::format("stop {}", running->id.value()));
    node_.Stop(ContainerId(running->id));
  }
}

void World::RemoveSome() {
  const RuntimeContainer* const exited =
      SomeContainer(Chance(80) ? ContainerState::kExited : ContainerState::kCreated);
  if (exited == nullptr) return;
  Note(fmt::format("remove {}", exited->id.value()));
  node_.Remove(ContainerId(exited->id));
}

void World::CrashSome() {
  if (const RuntimeContainer* const running = SomeContainer(ContainerState::kRunning)) {
    Note(fmt::format("crash {}", running->id.value()));
    node_.Crash(ContainerId(running->id));
  }
}

void World::RemoveSandbox(size_t index) {
  const PodSandboxId id = TakeAt(sandboxes_, index).id;
  Note(fmt::format("remove {}", id.value()));
  FakeRuntimeClient& runtime = node_.runtime;
  for (RuntimeContainer& container : runtime.held.containers) {
    if (container.pod_id == id) container.state = ContainerState::kExited;
  }
  node_.manager().PodStopped(id);
  std::erase_if(runtime.held.containers,
                [&id](const RuntimeContainer& container) { return container.pod_id == id; });
  std::erase_if(runtime.held.pods, [&id](const Pod& pod) { return pod.id == id; });
  node_.manager().PodRemoved(id);
}

void World::AnswerSome() {
  if (!abandoned_starts_.empty() && Chance(30)) EndAbandonedStart(0);
  AnswerLists();
  std::vector<FakeRuntimeClient::Update>& updates = node_.runtime.updates;
  for (int64_t n = Number(1, 10); n > 0 && !updates.empty(); --n) {
    const size_t index = static_cast<size_t>(Number(0, std::ssize(updates) - 1));
    Note(fmt::format("answer {} {}", updates[index].id.value(),
                     updates[index].adjustment.cpuset_cpus.value_or("")));
    if (Chance(90)) {
      node_.runtime.Answer(index);
    } else {
      Note("  which failed");
      ApplySomehow(updates[index].id, updates[index].adjustment);
      node_.runtime.Answer(
          index, Chance(50) ? DeadlineExceeded("no answer") : Internal("something went wrong"));
    }
  }
}

void World::AnswerLists() {
  while (!node_.runtime.lists.empty())
    node_.runtime.AnswerList();
}

// Every call under way fails for who made it; what became of it, the runtime knows.
void World::LoseConnection() {
  Note("lose the connection");
  for (const FakeRuntimeClient::Update& update : node_.runtime.updates)
    ApplySomehow(update.id, update.adjustment);
  node_.manager().RuntimeDisconnected();
  node_.runtime.DropAll();
  while (!creations_.empty())
    EndCreation(0, false);
  while (!resizes_.empty()) {
    const Resize resize = TakeAt(resizes_, 0);
    if (!resize.applied) ApplySomehow(resize.id, resize.Carried());
    node_.manager().UpdateFailed(resize.admission);
  }
  while (!starts_.empty()) {
    const std::unique_ptr<Start> start = TakeAt(starts_, 0);
    EXPECT_TRUE(start->decided.has_value()) << "waits end with the connection";
    if (!start->decided.has_value() || !start->decided->ok()) continue;
    AbandonStart(*start);
    node_.manager().StartUnclear(start->id);
  }
  node_.manager().RuntimeConnected();
  AnswerLists();
}

// kill -9: whatever was under way ends at the runtime as it likes, and nobody remembers it.
void World::RestartDaemon() {
  Note("restart");
  for (const FakeRuntimeClient::Update& update : node_.runtime.updates)
    ApplySomehow(update.id, update.adjustment);
  for (const auto& start : starts_)
    AbandonStart(*start);
  starts_.clear();
  creations_.clear();
  for (const Resize& resize : resizes_) {
    if (!resize.applied) ApplySomehow(resize.id, resize.Carried());
  }
  resizes_.clear();
  // Of one that runs on other CPUs, too, the runtime cannot tell which are its own.
  for (const Running& one : RunningContainers()) {
    const auto owned = owned_.find(one.id);
    if (owned == owned_.end() || one.in_force.IsSubsetOf(owned->second.cpus)) continue;
    owned_.erase(owned);
  }
  files_.Resume();
  node_.Restart();
  if (keeps_state_) return;
  for (const RuntimeContainer& container : node_.runtime.held.containers) {
    if (container.state == ContainerState::kCreated) may_start_.insert(container.id);
  }
}

void World::Settle() {
  while (!creations_.empty())
    EndCreation(0, true);
  while (!abandoned_starts_.empty())
    EndAbandonedStart(0);
  while (!resizes_.empty()) {
    EndResize(0);
    CheckRunning();
  }
  const bool settled = node_.RunUntil([this] {
    AnswerLists();
    while (!node_.runtime.updates.empty()) {
      node_.runtime.Answer(0);
      CheckRunning();
    }
    // Who is being started is left alone until that is over.
    for (size_t i = 0; i < starts_.size();) {
      if (starts_[i]->decided.has_value()) {
        EndStart(i);
      } else {
        ++i;
      }
    }
    return starts_.empty() && AllInForce();
  });
  EXPECT_TRUE(settled) << starts_.size() << " starts wait";
  may_start_.clear();
  clock_.Advance(std::chrono::hours(1));
  EXPECT_TRUE(node_.RunUntil([this] {
    AnswerLists();
    node_.runtime.AnswerAll();
    return AllInForce();
  }));
}

bool World::AllInForce() {
  bool all = true;
  node_.manager().snapshot().ForEachContainer([&](const Pod&, const Container& container) {
    const Placement& placement = container.placement;
    const RuntimeContainer* const held = node_.runtime.Find(container.id);
    if (placement.cpus && node_.runtime.CpusOf(container.id) != placement.cpus->ToString()) {
      all = false;
    }
    if (placement.cpus && !node_.manager().Settled(container.key)) all = false;
    if (!placement.mems || held == nullptr) return;
    if (held->resources.cpuset_mems.value_or("") != placement.mems->ToString()) all = false;
  });
  return all;
}

void World::End() {
  Settle();
  while (!sandboxes_.empty())
    RemoveSandbox(0);
  node_.runtime.AnswerAll();
}

}  // namespace resmgr::test
