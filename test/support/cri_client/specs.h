// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "pkg/api/runtime_v1.pb.h"
#include "pkg/base/units.h"
#include "pkg/model/pod.h"

// Pods and containers as a kubelet describes them to the runtime.
namespace resmgr::test {

namespace cri = ::runtime::v1;

struct PodSpec {
  std::string name = {};
  std::string namespace_name = "default";
  std::string uid = {};  // "uid-NAME" when empty
  QosClass qos = QosClass::kBestEffort;
  std::string cgroup_parent = {};  // "/kubepods/burstable/podUID" and so on when empty
};

// Labels as kubelet sets them; host network, so that no CNI is needed.
cri::PodSandboxConfig MakePod(const PodSpec& spec);

struct ContainerSpec {
  std::string name = "main";
  uint32_t attempt = 0;
  std::string image = "docker.io/local/busybox:1";
  MilliCpu cpu_request = {};
  MilliCpu cpu_limit = {};
  Bytes memory_limit = {};
};

// Shares, quota and period by kubelet's arithmetic: shares from the request (from the limit without
// a request, 2 without both), quota from the limit per 100 ms. The container sleeps until it is
// stopped.
cri::ContainerConfig MakeContainer(const ContainerSpec& spec);

// The usual pods: requests equal to limits; a request only; neither.
cri::PodSandboxConfig MakeGuaranteedPod(const std::string& name);
cri::PodSandboxConfig MakeBurstablePod(const std::string& name);
cri::PodSandboxConfig MakeBestEffortPod(const std::string& name);
cri::ContainerConfig MakeGuaranteedContainer(const std::string& name, int cpus);
cri::ContainerConfig MakeBurstableContainer(const std::string& name, MilliCpu cpu_request);
cri::ContainerConfig MakeBestEffortContainer(const std::string& name);

}  // namespace resmgr::test
