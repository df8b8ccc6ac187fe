// SPDX-License-Identifier: Apache-2.0
#include "test/bench/classes/classed_node.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <optional>
#include <utility>
#include <vector>

#include "pkg/config/config.h"
#include "pkg/pipeline/testing/test_call.h"
#include "policies/static/static_policy.h"
#include "test/support/machines/machines.h"

namespace resmgr::bench {
namespace {

namespace fs = std::filesystem;
using std::chrono::nanoseconds;

constexpr const char* kClasses =
    "classes:\n"
    "  memory: [{name: bronze, swaplimitratio: 0.5}]\n"
    "  blockio: {Classes: {slow: [{Weight: 80}]}}\n"
    "  scheduling: [{name: batch, policy: batch, nice: 5}]\n"
    "  rdt: {partitions: {all: {l3Allocation: 100%, classes: {gold: {l3Allocation: 50%}}}}}\n"
    "  AllowedNamespaces: {memory: ['*'], blockio: ['*'], scheduling: ['*'], rdt: ['*']}\n";

constexpr const char* kParent = "/kubepods/bench";

// Creations of which only the first one comes after work with files, which empties the caches of
// the processor.
constexpr int kAtOnce = 20;

template <typename T>
T OrDie(StatusOr<T> value) {
  if (!value.ok()) {
    std::fprintf(stderr, "%s\n", Describe(value.status()).c_str());
    std::exit(1);
  }
  return *std::move(value);
}

nanoseconds ThreadTime() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return std::chrono::seconds(now.tv_sec) + nanoseconds(now.tv_nsec);
}

std::unique_ptr<Policy> MakeStatic(const Machine& machine) {
  return OrDie(StaticPolicyFactory().create(
      {.machine = machine, .available = machine.allowed(), .reserved = CpuSet{0}}));
}

}  // namespace

ResourceManager::Options ClassedNode::Observed(Observer& observer) {
  ResourceManager::Options options = test::TestNode::FastOptions();
  options.observer = &observer;
  return options;
}

ClassedNode::ClassedNode(ClassesMode mode, int containers)
    : mode_(mode),
      node_(test::M80(), MakeStatic, Observed(observers_)),
      clock_(node_.loop()),
      pipeline_(clock_) {
  PutTree();
  if (mode_ != ClassesMode::kWithout) {
    classes_ = std::make_unique<HostClasses>(
        HostClasses::Options{.loop = node_.loop(),
                             .pipeline = pipeline_,
                             .host_root = directory_.path() + "/root",
                             .directory = directory_.path() + "/classes",
                             .door = [] { return CreationWays{.holds_starts = true}; },
                             .machine = &node_.machine(),
                             .manager = [this] { return &node_.manager(); }});
    observers_.Add(*classes_);
    classes_->Configure(mode_ == ClassesMode::kOn
                            ? OrDie(ParseConfig(kClasses, "bench", {})).classes
                            : ClassesConfig());
  }
  Creations ignored;
  for (int i = 0; i < containers; ++i)
    CreateOne(false, ignored);
}

void ClassedNode::Put(const std::string& path, std::string_view text) const {
  const fs::path file = fs::path(directory_.path()) / "root" / path;
  fs::create_directories(file.parent_path());
  std::ofstream(file) << text;
}

void ClassedNode::PutTree() {
  Put("sys/devices/system/cpu/online", "0-79\n");
  Put("sys/fs/cgroup/cgroup.controllers", "cpu io memory\n");
  Put("sys/fs/cgroup/kubepods/io.weight", "default 100\n");
  for (const char* const file : {"cbm_mask", "min_cbm_bits", "num_closids"})
    Put(std::string("sys/fs/resctrl/info/L3/") + file, file[0] == 'c' ? "fffff\n" : "16\n");
  Put("sys/fs/resctrl/info/L3/min_cbm_bits", "1\n");
  for (const std::string group : {"", "cri-resmgr.gold/"}) {
    Put("sys/fs/resctrl/" + group + "schemata", "L3:0=fffff;1=fffff\n");
    Put("sys/fs/resctrl/" + group + "tasks", "\n");
    Put("sys/fs/resctrl/" + group + "cpus_list", "\n");
  }
}

ClassedNode::Running ClassedNode::CreateOne(bool chooses, Creations& creations) {
  Pod pod;
  pod.name = fmt::format("p{}", ++last_);
  pod.id = PodSandboxId("sandbox-" + pod.name);
  pod.uid = PodUid("uid-" + pod.name);
  pod.namespace_name = "bench";
  pod.qos = QosClass::kBurstable;
  pod.cgroup_parent = kParent;
  if (chooses) {
    pod.annotations = StringMap({{"class.memory-qos.nri.io", "bronze"},
                                 {"blockioclass.resource-policy.nri.io/pod", "slow"},
                                 {"rdtclass.resource-policy.nri.io/pod", "gold"},
                                 {"scheduling-class.resource-policy.nri.io/pod", "batch"}});
  }
  node_.runtime.held.pods.push_back(pod);
  const PodSandboxId pod_id = pod.id;
  node_.manager().PodCreated(std::move(pod));
  CreateRequest request = test::TestNode::Request(pod_id, "main", 100);
  request.resources.memory_limit = int64_t{1} << 30;
  const CreateRequest kept = request;

  const nanoseconds start = ThreadTime();
  const Admission admission = OrDie(node_.manager().AdmitCreate(CreateRequest(request)));
  ContainerId id;
  {
    test::TestCall call(pipeline_, Operation::kCreateContainer);
    call.request.body = std::move(request);
    call.Start();
    if (!call.passed()) ++creations.waited;
    creations.cpu += ThreadTime() - start;
    id = node_.Created(kept, admission);
  }
  return {pod_id, id};
}

void ClassedNode::PutCgroup(const ContainerId& id) const {
  const std::string cgroup = fmt::format("sys/fs/cgroup{}/{}/", kParent, id.value());
  for (const char* const file : {"memory.high", "memory.swap.max", "io.weight", "cgroup.threads"})
    Put(cgroup + file, "\n");
}

void ClassedNode::Start(const ContainerId& id, Creations& creations) {
  const auto start = std::chrono::steady_clock::now();
  test::TestCall call(pipeline_, Operation::kStartContainer);
  call.request.container_id = id;
  call.Start();
  if (!call.passed()) {
    ++creations.held_starts;
    node_.RunUntil([&] { return call.passed(); });
  }
  creations.longest_start =
      std::max<nanoseconds>(creations.longest_start, std::chrono::steady_clock::now() - start);
  node_.Start(id);
}

void ClassedNode::Remove(const Running& running) {
  node_.Stop(running.id);
  node_.Remove(running.id);
  node_.manager().PodStopped(running.pod);
  node_.manager().PodRemoved(running.pod);
  std::erase_if(node_.runtime.held.pods, [&](const Pod& pod) { return pod.id == running.pod; });
}

Creations ClassedNode::Create(int count) {
  Creations creations;
  std::vector<Running> all;
  for (int i = 0; i < count; i += kAtOnce) {
    all.clear();
    for (int j = 0; j < kAtOnce; ++j)
      all.push_back(CreateOne(true, creations));
    for (const Running& running : all) {
      if (mode_ == ClassesMode::kOn) PutCgroup(running.id);
      Start(running.id, creations);
      Remove(running);
    }
  }
  creations.cpu /= count;
  return creations;
}

}  // namespace resmgr::bench
