// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "pkg/api/runtimehook.pb.h"
#include "test/support/fake_hook_server/fake_hook_server.h"

namespace resmgr::test {

// A hook server that decides as koordlet's plugins do, from labels and annotations of pods: it
// repeats the request, with these changes.
//
//   CPUSetAllocator   resource-status {"cpuset"}: these CPUs, and no quota; an LS pod: the node's
//                     shared pool, where there is one; a BE pod: no cpuset
//   BatchResource     a BE pod's extended-resource-spec: shares, quota and memory limit
//   CPUNormalization  an LS pod: the quota divided by kRatio
//   GPUEnvInject      device-allocated {"gpu": [{"minor", "resources"}]}: NVIDIA_VISIBLE_DEVICES;
//                     for pods of HAMi-core also the limits of their memory and cores
//
// (Koordinator 1.8, pkg/koordlet/runtimehooks.) Thread-safe.
class StandInKoordlet {
 public:
  static constexpr double kRatio = 1.25;
  static constexpr const char* kQosLabel = "koordinator.sh/qosClass";
  static constexpr const char* kCpuQos = "koordinator.sh/cpuQOS";
  static constexpr const char* kResourceStatus = "scheduling.koordinator.sh/resource-status";
  static constexpr const char* kExtendedSpec = "node.koordinator.sh/extended-resource-spec";
  static constexpr const char* kDevices = "scheduling.koordinator.sh/device-allocated";

  static constexpr const char* kIsolationLabel = "koordinator.sh/gpu-isolation-provider";

  // `shared_pool`: the CPUs of node.koordinator.sh/cpu-shared-pools; "": the node has none.
  explicit StandInKoordlet(const std::string& socket, const std::string& shared_pool = "");

  // The file that koordlet writes into the hook directory.
  static std::string File(const std::string& socket);

  // The pods that it was told of, for the group identity that koordlet writes itself.
  std::vector<::runtime::v1alpha1::PodSandboxHookRequest> pods() const;
  // The requests about updates that it received.
  std::vector<::runtime::v1alpha1::ContainerResourceHookRequest> updates() const;

 private:
  FakeHookServer server_;
};

}  // namespace resmgr::test
