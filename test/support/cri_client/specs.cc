// SPDX-License-Identifier: Apache-2.0
#include "test/support/cri_client/specs.h"

#include <algorithm>

namespace resmgr::test {

namespace {

constexpr int64_t kMinShares = 2;
constexpr int64_t kMaxShares = 262'144;
constexpr int64_t kSharesPerCpu = 1024;
constexpr int64_t kPeriod = 100'000;  // microseconds
constexpr int64_t kMinQuota = 1'000;
constexpr int64_t kMilli = 1000;

// Kubelet's scores; a burstable container's depends on its memory request, which we leave out, so
// the middle is used.
constexpr int64_t kGuaranteedOomScore = -997;
constexpr int64_t kBurstableOomScore = 999;
constexpr int64_t kBestEffortOomScore = 1000;

constexpr Bytes kSomeMemory{64 << 20};

std::string CgroupParent(QosClass qos, const std::string& uid) {
  switch (qos) {
    case QosClass::kGuaranteed:
      return "/kubepods/pod" + uid;
    case QosClass::kBurstable:
      return "/kubepods/burstable/pod" + uid;
    case QosClass::kBestEffort:
      break;
  }
  return "/kubepods/besteffort/pod" + uid;
}

int64_t OomScore(const ContainerSpec& spec) {
  if (spec.cpu_request.value == 0 && spec.cpu_limit.value == 0) return kBestEffortOomScore;
  return spec.cpu_request == spec.cpu_limit ? kGuaranteedOomScore : kBurstableOomScore;
}

}  // namespace

cri::PodSandboxConfig MakePod(const PodSpec& spec) {
  const std::string uid = spec.uid.empty() ? "uid-" + spec.name : spec.uid;
  cri::PodSandboxConfig config;
  auto* metadata = config.mutable_metadata();
  metadata->set_name(spec.name);
  metadata->set_uid(uid);
  metadata->set_namespace_(spec.namespace_name);
  config.set_hostname(spec.name);
  auto& labels = *config.mutable_labels();
  labels["io.kubernetes.pod.name"] = spec.name;
  labels["io.kubernetes.pod.namespace"] = spec.namespace_name;
  labels["io.kubernetes.pod.uid"] = uid;
  auto* linux = config.mutable_linux();
  linux->set_cgroup_parent(spec.cgroup_parent.empty() ? CgroupParent(spec.qos, uid)
                                                      : spec.cgroup_parent);
  linux->mutable_security_context()->mutable_namespace_options()->set_network(cri::NODE);
  return config;
}

cri::ContainerConfig MakeContainer(const ContainerSpec& spec) {
  cri::ContainerConfig config;
  config.mutable_metadata()->set_name(spec.name);
  config.mutable_metadata()->set_attempt(spec.attempt);
  config.mutable_image()->set_image(spec.image);
  config.add_command("sleep");
  config.add_args("100000");
  (*config.mutable_labels())["io.kubernetes.container.name"] = spec.name;
  auto* resources = config.mutable_linux()->mutable_resources();
  const MilliCpu shares = spec.cpu_request.value > 0 ? spec.cpu_request : spec.cpu_limit;
  resources->set_cpu_shares(
      std::clamp(shares.value * kSharesPerCpu / kMilli, kMinShares, kMaxShares));
  resources->set_cpu_period(kPeriod);
  if (spec.cpu_limit.value > 0) {
    resources->set_cpu_quota(std::max(spec.cpu_limit.value * kPeriod / kMilli, kMinQuota));
  }
  resources->set_memory_limit_in_bytes(spec.memory_limit.value);
  resources->set_oom_score_adj(OomScore(spec));
  return config;
}

cri::PodSandboxConfig MakeGuaranteedPod(const std::string& name) {
  return MakePod({.name = name, .qos = QosClass::kGuaranteed});
}

cri::PodSandboxConfig MakeBurstablePod(const std::string& name) {
  return MakePod({.name = name, .qos = QosClass::kBurstable});
}

cri::PodSandboxConfig MakeBestEffortPod(const std::string& name) {
  return MakePod({.name = name, .qos = QosClass::kBestEffort});
}

cri::ContainerConfig MakeGuaranteedContainer(const std::string& name, int cpus) {
  const MilliCpu cpu{cpus * kMilli};
  return MakeContainer(
      {.name = name, .cpu_request = cpu, .cpu_limit = cpu, .memory_limit = kSomeMemory});
}

cri::ContainerConfig MakeBurstableContainer(const std::string& name, MilliCpu cpu_request) {
  return MakeContainer({.name = name, .cpu_request = cpu_request});
}

cri::ContainerConfig MakeBestEffortContainer(const std::string& name) {
  return MakeContainer({.name = name});
}

}  // namespace resmgr::test
