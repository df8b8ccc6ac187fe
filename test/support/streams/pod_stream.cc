// SPDX-License-Identifier: Apache-2.0
#include "test/support/streams/pod_stream.h"

#include <algorithm>
#include <utility>

#include "pkg/policy/plan_check.h"
#include "test/support/machines/machines.h"

namespace resmgr::test {
namespace {

// The machine with these CPUs offline and those isolated.
Machine Changed(const Machine& machine, const CpuSet& offline, const CpuSet& isolated) {
  std::vector<Cpu> cpus = machine.cpus();
  for (Cpu& cpu : cpus) {
    if (offline.Contains(cpu.id)) {
      const int id = cpu.id;
      cpu = Cpu();
      cpu.id = id;
    }
    cpu.isolated = isolated.Contains(cpu.id);
  }
  return MakeMachine(PartsOf(std::move(cpus)));
}

Machine TwoCpus() {
  return MakeMachine({.cores = 2});
}

Machine OneCore() {
  return MakeMachine({.cores = 1, .threads = 2});
}

Machine FourCpus() {
  return MakeMachine({.cores = 2, .threads = 2});
}

Machine ManyCaches() {
  return MakeMachine({.packages = 2, .nodes = 2, .l3s = 4, .cores = 16, .threads = 2});
}

// Two dies of two L3 groups in each of two packages.
Machine Dies() {
  const Machine machine = MakeMachine({.packages = 2, .nodes = 2, .l3s = 2, .cores = 8});
  std::vector<Cpu> cpus = machine.cpus();
  for (Cpu& cpu : cpus) {
    cpu.die = cpu.id / 8;
    cpu.numa = cpu.package;
  }
  return MakeMachine(PartsOf(std::move(cpus)));
}

// A package of 24 CPUs with three L3 groups beside one of 8 CPUs.
Machine Asymmetric() {
  std::vector<Cpu> cpus;
  for (int id = 0; id < 32; ++id) {
    Cpu cpu;
    cpu.id = cpu.core = id;
    cpu.l3 = id / 8;
    cpu.numa = cpu.package = id < 24 ? 0 : 1;
    cpu.online = true;
    cpus.push_back(cpu);
  }
  return MakeMachine(PartsOf(std::move(cpus)));
}

Machine FewOfAPackage() {
  return Changed(M80(), Cpus("21-29,31-39,60-79"), {});
}

Machine SplitCores() {
  return Changed(S2Ht(), Cpus("7,9"), {});
}

Machine Isolated() {
  return Changed(M80(), {}, Cpus("10-19,50-59"));
}

}  // namespace

PodStream::PodStream(const Machine& machine, const CpuSet& reserved, const PolicyFactory& factory,
                     uint64_t seed, MilliCpu unreserved)
    : machine_(machine),
      reserved_(reserved),
      factory_(factory),
      unreserved_(unreserved),
      allocatable_(int64_t{1000} * (machine.allowed() - reserved).size() + unreserved.value),
      random_(seed) {
  for (const NumaNode& node : machine.nodes())
    memory_ += node.memory.value;
  MakePolicy();
}

void PodStream::MakePolicy() {
  StatusOr<std::unique_ptr<Policy>> policy = factory_.create({.machine = machine_,
                                                              .available = machine_.allowed(),
                                                              .reserved = reserved_,
                                                              .unreserved = unreserved_});
  if (policy.ok()) {
    policy_ = *std::move(policy);
  } else {
    result_.defects.push_back(Describe(policy.status()));
  }
}

int64_t PodStream::Number(int64_t first, int64_t last) {
  return std::uniform_int_distribution<int64_t>(first, last)(random_);
}

PodStream::Result PodStream::Run(int pods) {
  while (result_.pods < pods && result_.defects.empty()) {
    const int64_t what = Number(0, 99);
    const size_t index =
        members_.empty() ? 0 : static_cast<size_t>(Number(0, std::ssize(members_) - 1));
    if (what < 60 || members_.empty()) {
      const auto qos = static_cast<QosClass>(Number(0, 2));
      Create(qos, SomeRequest(qos));
    } else if (what < 66) {
      FillUp();
    } else if (what < 80) {
      Remove(index);
    } else if (what < 88) {
      StartAgain(index);
    } else if (what < 98) {
      Resize(index);
    } else {
      CheckRestart();
    }
  }
  return std::move(result_);
}

int64_t PodStream::SomeRequest(QosClass qos) {
  if (qos == QosClass::kBestEffort) return 0;
  const int64_t cpus = allocatable_ / 1000;
  const int64_t most = Chance(85) ? std::min<int64_t>(cpus, 8) : cpus;
  const int64_t kind = Number(0, 9);
  if (kind < 4) return 1000 * Number(1, most);
  if (kind < 7) return 50 * Number(1, 20);
  return std::min(Number(1, 1000 * most), allocatable_);
}

// Fills the node with one or two pods.
void PodStream::FillUp() {
  int64_t left = allocatable_ - cpu_used_;
  if (left >= 1000 && Chance(50)) Create(QosClass::kGuaranteed, left / 1000 * 1000);
  left = allocatable_ - cpu_used_;
  if (left > 0) Create(Chance(50) ? QosClass::kGuaranteed : QosClass::kBurstable, left);
  // With all CPUs requested, one more pod without requests always comes.
  Create(QosClass::kBestEffort, 0);
  if (cpu_used_ == allocatable_) ++result_.full;
}

void PodStream::Create(QosClass qos, int64_t milli_cpu) {
  const int64_t memory = qos == QosClass::kBestEffort ? 0 : Number(0, memory_ / 16);
  while (cpu_used_ + milli_cpu > allocatable_ || memory_used_ + memory > memory_)
    Remove(static_cast<size_t>(Number(0, std::ssize(members_) - 1)));
  Container& container = snapshot_.Add(fmt::format("pod{}", ++result_.pods), qos, milli_cpu);
  const ContainerKey key = container.key;
  Pod& pod = snapshot_.PodOf(key);
  if (Chance(8)) pod.namespace_name = "kube-system";
  Annotate(pod);
  SetNeeds(qos, milli_cpu, memory, container);
  const StatusOr<Plan> plan = policy_->Allocate(snapshot_, pod, container, nullptr);
  if (!plan.ok()) {
    Refused("create", container, plan.status());
    snapshot_.Remove(key);
    return;
  }
  Apply("create", plan);
  members_.push_back({key, milli_cpu, memory});
  cpu_used_ += milli_cpu;
  memory_used_ += memory;
}

// The memory request of Burstable containers is a guess, at times a bad one.
void PodStream::SetNeeds(QosClass qos, int64_t milli_cpu, int64_t memory, Container& container) {
  Requirements& needs = container.requirements;
  needs = {};
  needs.cpu_request.value = milli_cpu;
  needs.memory_request.value = memory;
  if (qos == QosClass::kGuaranteed) {
    needs.cpu_limit = needs.cpu_request;
    needs.memory_limit = needs.memory_request;
  } else if (qos == QosClass::kBurstable) {
    needs.cpu_limit.value = Chance(50) ? 0 : milli_cpu + 2000;
    needs.memory_estimated = Chance(50);
    if (needs.memory_estimated && Chance(20)) needs.memory_request.value = Number(0, memory_);
  }
}

// Adds annotations that need no resource that a scheduler does not count.
void PodStream::Annotate(Pod& pod) {
  if (Chance(15)) {
    pod.annotations.Set("prefer-shared-cpus.resource-policy.nri.io", Chance(30) ? "true" : "false");
  }
  if (Chance(5)) pod.annotations.Set("prefer-isolated-cpus.resource-policy.nri.io", "true");
}

void PodStream::Remove(size_t index) {
  const Member member = members_[index];
  members_.erase(members_.begin() + static_cast<std::ptrdiff_t>(index));
  cpu_used_ -= member.milli_cpu;
  memory_used_ -= member.memory;
  snapshot_.Remove(member.key);
  Apply("release", policy_->Release(snapshot_, member.key));
}

void PodStream::StartAgain(size_t index) {
  const Container former = snapshot_.At(members_[index].key);
  const Pod pod = snapshot_.PodOf(former.key);
  snapshot_.Remove(former.key);
  Container& container = snapshot_.Add(former.name, pod.qos, 0);
  Pod& again = snapshot_.PodOf(container.key);
  again.annotations = pod.annotations;
  again.namespace_name = pod.namespace_name;
  container.requirements = former.requirements;
  members_[index].key = container.key;
  const StatusOr<Plan> plan = policy_->Allocate(snapshot_, again, container, &former);
  if (plan.ok()) return Apply("start again", plan);
  Refused("start again", container, plan.status());
  Remove(index);
}

// Resizes within the node's resources, as a kubelet admits it.
void PodStream::Resize(size_t index) {
  Member& member = members_[index];
  Container& container = snapshot_.At(member.key);
  const QosClass qos = snapshot_.PodOf(member.key).qos;
  const int64_t milli_cpu = SomeRequest(qos);
  if (cpu_used_ - member.milli_cpu + milli_cpu > allocatable_) return;
  const Requirements before = container.requirements;
  container.requirements.cpu_request.value = milli_cpu;
  if (before.cpu_limit.value > 0) {
    container.requirements.cpu_limit = container.requirements.cpu_request;
  }
  const StatusOr<Plan> plan = policy_->Update(snapshot_, snapshot_.PodOf(member.key), container);
  if (!plan.ok()) {
    Refused("resize", container, plan.status());
    container.requirements = before;
    return;
  }
  Apply("resize", plan);
  cpu_used_ += milli_cpu - member.milli_cpu;
  member.milli_cpu = milli_cpu;
}

void PodStream::CheckRestart() {
  MakePolicy();
  const StatusOr<Plan> plan = policy_->Reconcile(snapshot_);
  if (plan.ok() && !plan->empty()) {
    const PlacementChange& change = plan->changes.front();
    const Placement& before = snapshot_.At(change.key).placement;
    result_.defects.push_back(fmt::format(
        "a restart changed {} containers, {} from {} of {} with {} ({}) to {} of {} with {} ({})",
        plan->size(), snapshot_.At(change.key).name, before.cpus.value_or(CpuSet()).ToString(),
        before.pool, before.mems.value_or(NodeSet()).ToString(), before.reason,
        change.placement.cpus.value_or(CpuSet()).ToString(), change.placement.pool,
        change.placement.mems.value_or(NodeSet()).ToString(), change.placement.reason));
  }
  Apply("restart", plan);
}

void PodStream::Apply(std::string_view what, const StatusOr<Plan>& plan) {
  Status status = plan.status();
  if (plan.ok()) status = CheckPlan(machine_, snapshot_, *plan);
  if (!status.ok()) {
    result_.defects.push_back(fmt::format("{}: {}", what, Describe(status)));
    return;
  }
  snapshot_.Apply(*plan);
}

void PodStream::Refused(std::string_view what, const Container& container, const Status& status) {
  result_.refusals.push_back(fmt::format("{} {} of {}m, {}m of {}m are asked for: {}", what,
                                         container.name, container.requirements.cpu_request.value,
                                         cpu_used_, allocatable_, Describe(status)));
}

const std::vector<StreamMachine>& StreamMachines() {
  static const auto* const kMachines = new std::vector<StreamMachine>{
      {"TwoCpus", TwoCpus, "0"},
      {"OneCore", OneCore, "1"},
      {"FourCpus", FourCpus, "0"},
      {"S1Ht", S1Ht, "0,4"},
      {"S2Ht", S2Ht, "0"},
      {"S2NoHt", S2NoHt, "0,7"},
      {"M80", M80, "0,40"},
      {"F80", F80, "79"},
      {"L256", L256, "0-3"},
      {"Q288", Q288, "0-3"},
      {"U16", U16, "0"},
      {"U16Smt", U16Smt, "0,8"},
      {"U16TwoNodes", U16TwoNodes, "0-7"},
      {"Hybrid", Hybrid, "7"},
      {"ManyCaches", ManyCaches, "0,64"},
      {"Dies", Dies, "0"},
      {"Asymmetric", Asymmetric, "31"},
      {"FewOfAPackage", FewOfAPackage, "0"},
      {"SplitCores", SplitCores, "1"},
      {"Isolated", Isolated, "0"},
  };
  return *kMachines;
}

}  // namespace resmgr::test
