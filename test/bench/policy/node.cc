// SPDX-License-Identifier: Apache-2.0
#include "test/bench/policy/node.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <utility>

namespace resmgr::test {
namespace {

int64_t Nanoseconds(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return int64_t{1'000'000'000} * now.tv_sec + now.tv_nsec;
}

template <typename Call>
auto Timed(Times& times, const Call& call) {
  const int64_t cpu = Nanoseconds(CLOCK_THREAD_CPUTIME_ID);
  const int64_t wall = Nanoseconds(CLOCK_MONOTONIC);
  auto result = call();
  times.wall.push_back(Nanoseconds(CLOCK_MONOTONIC) - wall);
  times.cpu.push_back(Nanoseconds(CLOCK_THREAD_CPUTIME_ID) - cpu);
  return result;
}

int64_t Number(std::mt19937_64& random, int64_t first, int64_t last) {
  return std::uniform_int_distribution<int64_t>(first, last)(random);
}

}  // namespace

void Times::Reserve(size_t count) {
  wall.reserve(count);
  cpu.reserve(count);
}

void Times::Clear() {
  wall.clear();
  cpu.clear();
}

void Times::KeepShortest(const Times& again) {
  for (size_t i = 0; i < wall.size(); ++i) {
    wall[i] = std::min(wall[i], again.wall.at(i));
    cpu[i] = std::min(cpu[i], again.cpu.at(i));
  }
}

Machine BenchMachine(const Shape& shape) {
  const Machine machine = MakeMachine(shape);
  Machine::Parts parts{
      .cpus = machine.cpus(), .nodes = machine.nodes(), .allowed = machine.allowed()};
  for (NumaNode& node : parts.nodes)
    node.memory = Bytes{int64_t{4} * node.cpus.size() << 30};
  return MakeMachine(std::move(parts));
}

PodShape SomePod(std::mt19937_64& random) {
  constexpr int64_t kGiB = int64_t{1} << 30;
  const int64_t kind = Number(random, 1, 100);
  if (kind <= 25) {
    const int64_t cpus =
        Number(random, 1, 100) <= 90 ? Number(random, 1, 8) : Number(random, 9, 24);
    return {QosClass::kGuaranteed, cpus * 1000, cpus * 1000, cpus * kGiB};
  }
  if (kind <= 40) {
    const int64_t milli = Number(random, 1, 9) * 100;
    return {QosClass::kGuaranteed, milli, milli, kGiB / 2};
  }
  if (kind <= 85) {
    const int64_t milli = Number(random, 1, 20) * 100;
    return {QosClass::kBurstable, milli, kind % 2 == 0 ? 0 : 2 * milli, kGiB / 2};
  }
  return {};
}

BenchNode::BenchNode(const Machine& machine, const PolicyFactory& factory) : machine_(machine) {
  StatusOr<std::unique_ptr<Policy>> policy =
      factory.create({.machine = machine_,
                      .available = machine_.allowed(),
                      .reserved = CpuSet{machine_.allowed().First()}});
  if (!policy.ok()) {
    std::fprintf(stderr, "%s\n", Describe(policy.status()).c_str());
    std::exit(1);
  }
  policy_ = *std::move(policy);
}

void BenchNode::Apply(const StatusOr<Plan>& plan, ContainerKey key) {
  if (!plan.ok()) {
    std::fprintf(stderr, "%s\n", Describe(plan.status()).c_str());
    std::exit(1);
  }
  moves_ += static_cast<int64_t>(plan->size()) - (plan->Find(key) == nullptr ? 0 : 1);
  snapshot_.Apply(*plan);
}

bool BenchNode::Create(const PodShape& shape) {
  Container& container = snapshot_.Add("container", shape.qos, shape.milli_cpu);
  container.requirements.cpu_limit.value = shape.limit;
  container.requirements.memory_request.value = shape.memory;
  container.requirements.memory_limit.value = shape.memory;
  Pod& pod = snapshot_.PodOf(container.key);
  if (shape.annotation != 0) {
    pod.annotations = {
        {"prefer-shared-cpus.resource-policy.nri.io", "false"},
        {"resource-policy.nri.io/affinity",
         fmt::format("container:\n- scope: {{key: namespace, operator: Equals, values: [ns]}}\n"
                     "  match: {{key: pod/name, operator: Matches, values: ['cont*']}}\n"
                     "  weight: 2 # {}\n",
                     shape.annotation)}};
  }
  Times& times = shape.annotation == 0   ? allocate_times
                 : shape.annotation == 1 ? annotated_times
                                         : first_read_times;
  if (shape.annotation > 1) {
    Timed(prepare_times, [&] {
      policy_->Prepare(pod);
      return true;
    });
  }
  const StatusOr<Plan> plan =
      Timed(times, [&] { return policy_->Allocate(snapshot_, pod, container, nullptr); });
  if (!plan.ok()) {
    snapshot_.Remove(container.key);
    return false;
  }
  Apply(plan, container.key);
  keys_.push_back(container.key);
  requested_ += shape.milli_cpu;
  return true;
}

void BenchNode::Remove(size_t index) {
  const ContainerKey key = keys_[index];
  requested_ -= At(index).requirements.cpu_request.value;
  keys_[index] = keys_.back();
  keys_.pop_back();
  snapshot_.Remove(key);
  Apply(Timed(release_times, [&] { return policy_->Release(snapshot_, key); }), key);
}

bool BenchNode::Resize(size_t index, int64_t milli_cpu) {
  Container& container = snapshot_.At(keys_[index]);
  MilliCpu& request = container.requirements.cpu_request;
  const MilliCpu before = std::exchange(request, MilliCpu{milli_cpu});
  const StatusOr<Plan> plan = Timed(update_times, [&] {
    return policy_->Update(snapshot_, snapshot_.PodOf(container.key), container);
  });
  if (!plan.ok()) {
    request = before;
    return false;
  }
  requested_ += milli_cpu - before.value;
  Apply(plan, container.key);
  return true;
}

void BenchNode::Reconcile() {
  Apply(Timed(reconcile_times, [&] { return policy_->Reconcile(snapshot_); }));
}

}  // namespace resmgr::test
