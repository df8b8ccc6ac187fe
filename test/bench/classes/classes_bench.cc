// SPDX-License-Identifier: Apache-2.0
// The cost of classes for the creation of a container, in the brain and the pipeline of one
// process: without the module, with it and no classes, and with classes of four kinds. They are
// measured in turn within each round, by the processor time of the loop's thread. Prints ratios
// with their intervals of 95 % confidence; `--check` exits with 1 when a target is missed.
#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pkg/classes/host_classes.h"
#include "pkg/config/config.h"
#include "pkg/log/log.h"
#include "pkg/pipeline/pipeline.h"
#include "pkg/pipeline/testing/function_stage.h"
#include "pkg/resmgr/observers.h"
#include "pkg/resmgr/testing/test_node.h"
#include "pkg/sys/clock.h"
#include "pkg/sys/temp_dir.h"
#include "policies/static/static_policy.h"
#include "test/bench/order.h"
#include "test/support/machines/machines.h"

namespace resmgr::bench {
namespace {

// The module of classes in a daemon: it is not there, is there without classes, or gives each
// container classes of memory, block I/O, scheduling and caches.
enum class ClassesMode { kWithout, kOff, kOn };

// The outcome of some creations.
struct Creations {
  std::chrono::nanoseconds cpu{0};  // of the loop's thread, for one creation
  int waited = 0;                   // whose answer did not come at once
  int held_starts = 0;              // starts that waited for the worker
  std::chrono::nanoseconds longest_start{0};
};

// A brain with the static policy that holds containers on shared CPUs, and a pipeline. The host's
// files are a tree in memory.
class ClassedNode {
 public:
  ClassedNode(ClassesMode mode, int containers);

  // Creates so many containers, a multiple of 20, and starts and removes them 20 at a time.
  Creations Create(int count);

 private:
  struct Running {
    PodSandboxId pod;
    ContainerId id;
  };

  static ResourceManager::Options Observed(Observer& observer);
  void PutTree();
  void Put(const std::string& path, std::string_view text) const;
  void PutCgroup(const ContainerId& id) const;
  // With the classes that its pod chooses, or without any.
  Running CreateOne(bool chooses, Creations& creations);
  void Start(const ContainerId& id, Creations& creations);
  void Remove(const Running& running);

  const ClassesMode mode_;
  const TempDir directory_;
  Observers observers_;
  test::TestNode node_;
  LoopClock clock_;
  Pipeline pipeline_;
  std::unique_ptr<HostClasses> classes_;
  int last_ = 0;
};

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

constexpr int kContainers = 500;
constexpr int kRounds = 30;
// In each round, by mode: with classes each start waits for the worker.
constexpr std::array kCreations = {1000, 1000, 20};
constexpr std::array kModes = {ClassesMode::kWithout, ClassesMode::kOff, ClassesMode::kOn};
constexpr std::array kNames = {"without the module", "no classes", "all classes"};
// A call with the module and no classes may take so much longer.
constexpr double kMostOff = 1.01;

struct Ratio {
  double mean = 1;
  double low = 1;
  double high = 1;
};

// The mean of logarithms: a slow round counts as much as a fast one.
Ratio RatioOf(const std::vector<double>& ratios) {
  double sum = 0;
  for (const double ratio : ratios)
    sum += std::log(ratio);
  const auto count = static_cast<double>(ratios.size());
  const double mean = sum / count;
  double squares = 0;
  for (const double ratio : ratios)
    squares += (std::log(ratio) - mean) * (std::log(ratio) - mean);
  // Two standard errors.
  const double half = 2 * std::sqrt(squares / (count - 1) / count);
  return {std::exp(mean), std::exp(mean - half), std::exp(mean + half)};
}

struct Sums {
  double nanoseconds = 0;
  int waited = 0;
  int held_starts = 0;
  double longest_start_ms = 0;
};

int Run(bool check) {
  ConfigureLogging({.level = LogLevel::kError});
  std::vector<std::unique_ptr<ClassedNode>> nodes;
  nodes.reserve(kModes.size());
  for (const ClassesMode mode : kModes)
    nodes.push_back(std::make_unique<ClassedNode>(mode, kContainers));
  std::array<Sums, kModes.size()> sums;
  std::array<std::vector<double>, kModes.size()> ratios;
  for (int round = -1; round < kRounds; ++round) {
    std::array<double, kModes.size()> times{};
    for (const size_t mode : OrderOf(static_cast<size_t>(round) + 1, kModes.size())) {
      const Creations creations = nodes[mode]->Create(kCreations[mode]);
      times[mode] = static_cast<double>(creations.cpu.count());
      if (round < 0) continue;  // to warm up
      sums[mode].nanoseconds += times[mode] / kRounds;
      sums[mode].waited += creations.waited;
      sums[mode].held_starts += creations.held_starts;
      sums[mode].longest_start_ms =
          std::max(sums[mode].longest_start_ms,
                   std::chrono::duration<double, std::milli>(creations.longest_start).count());
    }
    for (size_t mode = 0; round >= 0 && mode < kModes.size(); ++mode)
      ratios[mode].push_back(times[mode] / times[0]);
  }
  std::printf("%d rounds, %d containers\n%-20s %10s %8s %17s %8s %12s\n", kRounds, kContainers, "",
              "CPU (us)", "ratio", "interval", "waited", "starts held");
  for (size_t mode = 0; mode < kModes.size(); ++mode) {
    const Ratio ratio = RatioOf(ratios[mode]);
    std::printf("%-20s %10.2f %8.4f  %7.4f-%7.4f %8d %7d, %.1f ms at most\n", kNames[mode],
                sums[mode].nanoseconds / 1000, ratio.mean, ratio.low, ratio.high, sums[mode].waited,
                sums[mode].held_starts, sums[mode].longest_start_ms);
  }
  const bool fast = RatioOf(ratios[1]).low <= kMostOff;
  const bool at_once = sums[2].waited == 0;
  if (!fast) std::printf("missed: with no classes a creation takes more than %.2f\n", kMostOff);
  if (!at_once) std::printf("missed: answers to creations wait\n");
  return check && !(fast && at_once) ? 1 : 0;
}

}  // namespace
}  // namespace resmgr::bench

int main(int argc, char** argv) {
  return resmgr::bench::Run(argc > 1 && std::string_view(argv[1]) == "--check");
}
