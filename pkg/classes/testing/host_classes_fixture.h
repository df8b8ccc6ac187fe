// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "pkg/classes/host_classes.h"
#include "pkg/pipeline/testing/function_stage.h"
#include "pkg/resmgr/observers.h"
#include "pkg/resmgr/testing/test_node.h"
#include "pkg/sys/clock.h"
#include "pkg/sys/files.h"
#include "pkg/sys/temp_dir.h"
#include "test/support/machines/machines.h"

namespace resmgr::test {

inline const char* const kDefaultAffinity = "proc/irq/default_smp_affinity";

// A policy with a class for the CPUs that containers share, and one of block I/O for each
// container.
class ZonedPolicy final : public FirstFitPolicy {
 public:
  explicit ZonedPolicy(const Machine& machine)
      : FirstFitPolicy(machine), online_(machine.online()) {}

  std::unique_ptr<Policy> Clone() const override { return std::make_unique<ZonedPolicy>(*this); }
  StatusOr<Plan> Allocate(const Snapshot& snapshot, const Pod& pod, const Container& container,
                          const Container* predecessor) override {
    names_[container.key] = container.name;
    return FirstFitPolicy::Allocate(snapshot, pod, container, predecessor);
  }
  ClassNames ClassesOf(ContainerKey key) const override {
    const auto name = names_.find(key);
    if (name == names_.end()) return {};
    return {{"blockio", "of-" + name->second}};
  }
  std::vector<Zone> Zones(const Snapshot&) const override {
    CpuSet exclusive;
    for (const auto& [key, cpus] : grants())
      exclusive |= cpus;
    return {{.name = "all",
             .cpus = online_,
             .exclusive = exclusive,
             .shared = online_ - exclusive - CpuSet{0},
             .classes = {{"cpu", "plain"}}}};
  }

 private:
  const CpuSet online_;
  std::map<ContainerKey, std::string> names_;
};

// A brain with that policy, and a tree of the host's files.
class HostClassesTest : public ::testing::Test {
 protected:
  static ClassesConfig Interrupts() {
    return {.isolation = {.interrupts = IsolationConfig::Interrupts::kIsolate}};
  }

  HostClassesTest() {
    Put(kDefaultAffinity, "ff\n");
    Put("sys/devices/system/cpu/online", "0-7\n");
    MakeClasses();
  }
  // A daemon's, which begins.
  void MakeClasses() {
    observers_ = Observers();
    classes_.reset();
    classes_ = std::make_unique<HostClasses>(HostClasses::Options{
        .loop = node_.loop(),
        .pipeline = pipeline_,
        .host_root = Root(),
        .directory = directory_.path() + "/classes",
        .door = [this] { return ways_; },
        .machine = &machine_,
        .manager = [this] { return with_policy_ ? &node_.manager() : nullptr; },
        .period = period_,
        .retry = std::chrono::milliseconds(5),
        // A start on a busy machine waits until its work is done.
        .start_patience = std::chrono::seconds(30)});
    observers_.Add(*classes_);
  }
  std::string Root() const { return directory_.path() + "/root"; }
  void Put(const std::string& path, std::string_view text) const {
    directory_.Put("root/" + path, text);
  }
  std::string At(const std::string& path) const {
    return ReadFile(Root() + "/" + path, 1 << 10).value_or("?");
  }
  static Pod PodWith(const StringMap& annotations) {
    Pod pod;
    pod.id = PodSandboxId("sandbox-p");
    pod.uid = PodUid("uid-p");
    pod.name = "p";
    pod.namespace_name = "ns";
    pod.cgroup_parent = "/kubepods/p";
    pod.qos = QosClass::kBurstable;
    pod.annotations = annotations;
    return pod;
  }
  // A container of a pod with these annotations, whose cgroup v2 has these files.
  ContainerId RunWith(const StringMap& annotations,
                      std::initializer_list<std::pair<const char*, const char*>> files) {
    Put("sys/fs/cgroup/cgroup.controllers", "cpu io memory\n");
    const Pod pod = PodWith(annotations);
    node_.runtime.held.pods.push_back(pod);
    node_.manager().PodCreated(Pod(pod));
    ContainerId id = node_.Create(TestNode::Request(pod.id, "p", 500)).value();
    for (const auto& [file, text] : files)
      Put(CgroupOf(id) + "/" + file, text);
    return id;
  }
  // Calls behind the policy, as a front door has them, which have begun.
  std::unique_ptr<TestCall> Create(CreateRequest create) {
    auto call = std::make_unique<TestCall>(pipeline_, Operation::kCreateContainer);
    call->request.body = std::move(create);
    call->Start();
    return call;
  }
  std::unique_ptr<TestCall> Start(const ContainerId& id) {
    auto call = std::make_unique<TestCall>(pipeline_, Operation::kStartContainer);
    call->request.container_id = id;
    call->Start();
    return call;
  }
  std::unique_ptr<TestCall> SetQuota(const ContainerId& id, int64_t quota) {
    auto call = std::make_unique<TestCall>(pipeline_, Operation::kUpdateContainerResources);
    call->request.container_id = id;
    ContainerUpdate update;
    update.has_linux = true;
    update.resources.cpu_quota = quota;
    call->request.body = std::move(update);
    call->Start();
    return call;
  }
  // The answer to a creation that does not have to wait.
  Status Refusal(CreateRequest create) {
    return Create(std::move(create))->decided.value_or(Internal("it waits"));
  }
  static std::string CgroupOf(const ContainerId& id) {
    return fmt::format("sys/fs/cgroup/kubepods/p/{}", id.value());
  }
  bool Becomes(const std::string& path, std::string_view text) {
    return node_.RunUntil([&] { return At(path) == text; });
  }

  const TempDir directory_;
  Observers observers_;
  bool with_policy_ = true;
  CreationWays ways_;
  const Machine machine_ = S1Ht();
  std::chrono::milliseconds period_{20};
  TestNode node_{S1Ht(),  // CPUs 0-7
                 [](const Machine& machine) { return std::make_unique<ZonedPolicy>(machine); },
                 TestNode::Observed(observers_)};
  LoopClock clock_{node_.loop()};
  Pipeline pipeline_{clock_};
  std::unique_ptr<HostClasses> classes_;
};

}  // namespace resmgr::test
