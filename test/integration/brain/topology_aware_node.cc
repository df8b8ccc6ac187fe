// SPDX-License-Identifier: Apache-2.0
#include "test/integration/brain/topology_aware_node.h"

#include <array>
#include <utility>

#include <gtest/gtest.h>

#include "pkg/config/yaml_reader.h"
#include "pkg/kube/cpu_arithmetic.h"
#include "policies/topology-aware/topology_aware_policy.h"
#include "test/support/machines/machines.h"

namespace resmgr::test {
namespace {

TestNode::MakePolicy PolicyWith(const TopologyAwareNode::Setup& setup) {
  return [setup](const Machine& machine) {
    const StatusOr<ConfigNode> config = ParseYaml(setup.section, "test.yaml");
    EXPECT_TRUE(config.ok()) << config.status();
    const CpuSet available =
        setup.available.empty() ? machine.allowed() : test::Cpus(setup.available);
    StatusOr<std::unique_ptr<Policy>> policy =
        TopologyAwarePolicy::Create({.machine = machine,
                                     .available = available,
                                     .reserved = test::Cpus(setup.reserved),
                                     .section = &*config});
    EXPECT_TRUE(policy.ok()) << policy.status();
    return *std::move(policy);
  };
}

ResourceManager::Options OptionsWith(const TopologyAwareNode::Setup& setup) {
  ResourceManager::Options options = TestNode::FastOptions();
  options.clock = setup.clock;
  return options;
}

}  // namespace

Machine C4Pmem4() {
  constexpr int kNodes = 8;
  // The node with CPUs beside which the memory of each node is.
  constexpr std::array<int, kNodes> kBeside = {0, 1, 2, 3, 2, 3, 0, 1};
  Machine::Parts parts;
  for (int id = 0; id < 4; ++id) {
    Cpu cpu;
    cpu.id = cpu.core = cpu.l3 = cpu.numa = cpu.package = id;
    cpu.online = true;
    parts.cpus.push_back(cpu);
    parts.allowed.Add(id);
  }
  for (int id = 0; id < kNodes; ++id) {
    NumaNode node;
    node.id = id;
    node.type = id < 4 ? MemoryType::kDram : MemoryType::kPmem;
    node.memory = Bytes{(id < 4 ? int64_t{2} : int64_t{4}) << 30};
    for (int other = 0; other < kNodes; ++other) {
      const bool same = kBeside[static_cast<size_t>(id)] == kBeside[static_cast<size_t>(other)];
      node.distances.push_back(id == other ? 10 : same ? 17 : 28);
    }
    parts.nodes.push_back(std::move(node));
  }
  return MakeMachine(std::move(parts));
}

TopologyAwareNode::TopologyAwareNode(Machine machine, const Setup& setup)
    : node_(std::move(machine), PolicyWith(setup), OptionsWith(setup)) {}

Status TopologyAwareNode::Run(const PodSpec& spec) {
  Pod pod;
  pod.id = PodSandboxId(fmt::format("sandbox-{}-{}", spec.name, ++pods_));
  pod.uid = PodUid(fmt::format("uid-{}-{}", spec.name, pods_));
  pod.name = spec.name;
  pod.namespace_name = spec.name_space;
  pod.qos = spec.qos;
  pod.annotations = spec.annotations;
  node_.runtime.held.pods.push_back(pod);
  node_.manager().PodCreated(pod);
  for (size_t i = 0; i < spec.milli_cpu.size(); ++i) {
    CreateRequest request =
        TestNode::Request(pod.id, fmt::format("{}c{}", spec.name, i), spec.milli_cpu[i]);
    if (spec.qos != QosClass::kGuaranteed) {
      request.resources.cpu_quota = QuotaFromMilliCpu(MilliCpu{spec.limit});
    }
    request.hints = spec.hints;
    if (spec.memory > 0) request.resources.memory_limit = spec.memory;
    RESMGR_RETURN_IF_ERROR(RunContainer(request));
  }
  return OkStatus();
}

Status TopologyAwareNode::RunContainer(const CreateRequest& request) {
  std::map<std::string, CpuSet> before;
  for (const auto& [name, running] : running_)
    before[name] = Exclusive(name);
  RESMGR_ASSIGN_OR_RETURN(const ContainerId id, node_.Create(request));
  node_.runtime.AnswerAll();
  node_.Start(id);
  running_[request.name] = {request, id};
  for (const auto& [name, exclusive] : before) {
    if (name != request.name) {
      EXPECT_EQ(Exclusive(name).ToString(), exclusive.ToString()) << name << " moved";
    }
  }
  return OkStatus();
}

void TopologyAwareNode::MustRun(const PodSpec& pod) {
  const Status status = Run(pod);
  ASSERT_TRUE(status.ok()) << status;
}

Status TopologyAwareNode::Resize(const std::string& container, int64_t milli_cpu) {
  const ContainerId id = running_.at(container).id;
  const LinuxResources resources = TestNode::Resources(milli_cpu);
  RESMGR_ASSIGN_OR_RETURN(const Admission admission, node_.manager().AdmitUpdate(id, resources));
  // The policy's appended values override the kubelet's.
  ResourceValues carried = admission.adjustment;
  if (!carried.cpu_shares) carried.cpu_shares = resources.cpu_shares;
  if (!carried.cpu_quota) carried.cpu_quota = resources.cpu_quota;
  node_.runtime.Apply(id, carried);
  node_.manager().UpdateSucceeded(admission);
  node_.runtime.AnswerAll();
  return OkStatus();
}

void TopologyAwareNode::End(const std::string& container) {
  const ContainerId id = running_.at(container).id;
  node_.Stop(id);
  node_.Remove(id);
  node_.runtime.AnswerAll();
  running_.erase(container);
}

void TopologyAwareNode::RunAgain(const std::string& container) {
  CreateRequest request = running_.at(container).request;
  node_.Stop(running_.at(container).id);
  ++request.attempt;
  const Status status = RunContainer(request);
  ASSERT_TRUE(status.ok()) << status;
}

const Placement& TopologyAwareNode::PlacementOf(const std::string& container) const {
  return node_.Known(running_.at(container).id)->placement;
}

CpuSet TopologyAwareNode::Cpus(const std::string& container) const {
  return PlacementOf(container).cpus.value_or(CpuSet());
}

CpuSet TopologyAwareNode::Exclusive(const std::string& container) const {
  return PlacementOf(container).exclusive;
}

std::string TopologyAwareNode::Mems(const std::string& container) const {
  return PlacementOf(container).mems.value_or(NodeSet()).ToString();
}

std::string TopologyAwareNode::MemsInForce(const std::string& container) {
  node_.runtime.AnswerAll();
  return node_.runtime.Find(running_.at(container).id)->resources.cpuset_mems.value_or("");
}

std::string TopologyAwareNode::Reason(const std::string& container) const {
  return PlacementOf(container).reason;
}

std::string TopologyAwareNode::Pool(const std::string& container) const {
  return PlacementOf(container).pool;
}

int TopologyAwareNode::Nodes(const std::string& container) const {
  return node_.machine().NodesOf(Cpus(container)).size();
}

int TopologyAwareNode::Cores(const std::string& container) const {
  std::set<int> cores;
  for (const int cpu : Cpus(container))
    cores.insert(node_.machine().FindCpu(cpu)->core);
  return static_cast<int>(cores.size());
}

int TopologyAwareNode::Packages(const std::string& container) const {
  std::set<int> packages;
  for (const int cpu : Cpus(container))
    packages.insert(node_.machine().FindCpu(cpu)->package);
  return static_cast<int>(packages.size());
}

bool TopologyAwareNode::Disjoint(const std::vector<std::string>& containers) const {
  CpuSet used;
  for (const std::string& container : containers) {
    if (Cpus(container).empty() || used.Intersects(Cpus(container))) return false;
    used |= Cpus(container);
  }
  return true;
}

bool TopologyAwareNode::NodesDisjoint(const std::vector<std::string>& containers) const {
  NodeSet used;
  for (const std::string& container : containers) {
    const NodeSet nodes = node_.machine().NodesOf(Cpus(container));
    if (nodes.empty() || used.Intersects(nodes)) return false;
    used |= nodes;
  }
  return true;
}

std::vector<std::string> TopologyAwareNode::InForce() {
  node_.runtime.AnswerAll();
  std::vector<std::string> lines;
  for (const RuntimeContainer& container : node_.runtime.held.containers) {
    lines.push_back(fmt::format("{} cpus={} mems={} shares={} quota={}", container.name,
                                container.resources.cpuset_cpus.value_or("-"),
                                container.resources.cpuset_mems.value_or("-"),
                                container.resources.cpu_shares.value_or(0),
                                container.resources.cpu_quota.value_or(0)));
  }
  return lines;
}

}  // namespace resmgr::test
