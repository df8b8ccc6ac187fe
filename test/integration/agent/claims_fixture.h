// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "test/integration/agent/agent_pair_fixture.h"
#include "test/support/fake_kubelet/plugin_kubelet.h"

namespace resmgr::test {

// A kubelet's side of Dynamic Resource Allocation before daemon and agent. The names are those of
// dra-driver-cpu. CPU 0 of eight is reserved.
class ClaimsTest : public AgentPairTest {
 protected:
  static constexpr char kDriver[] = "dra.cpu";
  static constexpr char kSlice[] = "n1-dra.cpu";
  // CPUs that the policy may grant: all but the reserved one.
  static constexpr int kAllowed = 7;

  ClaimsTest();

  std::string Host(const std::string& path) const { return Path("host") + path; }
  // Writes the daemon's configuration: this policy section, with the driver on, and with device
  // metadata where `metadata_` says so.
  void Configure(const std::string& policy);
  std::vector<std::string> ClaimFlags(const std::vector<std::string>& more = {}) const;
  void StartDaemonWithClaims() { StartDaemon(ClaimFlags()); }
  // Both; the kubelet knows the driver.
  void StartAll();
  bool Registered();
  // Kills the daemon; the kubelet knows the next one, which has these flags, too.
  void KillDaemon() { KillWithFlags({}); }
  void KillWithFlags(const std::vector<std::string>& more);

  static PluginKubelet::Claim Claim(const std::string& name) {
    return {.uid = "uid-" + name, .namespace_name = "default", .name = name};
  }
  // The scheduler has given this claim so many CPUs.
  void Allocate(const std::string& name, int cpus) { Allocate(name, {.cpus = cpus}); }
  // The same with more, for our driver unless it names another.
  void Allocate(const std::string& name, ApiServer::Allocation allocation);
  StatusOr<dra_api::NodePrepareResourcesResponse> Prepare(const std::string& name) {
    return kubelet_.PrepareAll(kDriver, {Claim(name)}, kPatience);
  }
  // Both: the scheduler gives the claim so many CPUs, and the kubelet prepares it.
  Status Give(const std::string& name, int cpus) {
    Allocate(name, cpus);
    return Prepare(name).status();
  }
  Status Unprepare(const std::string& name) {
    return kubelet_.UnprepareAll(kDriver, {Claim(name)}, kPatience);
  }
  // cri-resmgr-ctl release-claim for the claim "a" with this flag, or none.
  Status ReleaseByOrder(const std::string& flag) const;
  // The error of a single try; "" where the claim is prepared.
  std::string ErrorOf(const std::string& name);
  std::string CdiFile(const std::string& name) const;
  // The claim's device metadata, as its containers read it; null where there is none.
  Json Metadata(const std::string& name) const;
  // The CPUs that it tells.
  CpuSet CpusByMetadata(const std::string& name) const;
  // The CPUs that containers of the claim are told.
  CpuSet CpusOf(const std::string& name) const;
  static std::string VariableOf(const std::string& name) { return "DRA_CPUSET_uid-" + name; }
  static std::string DeviceOf(const std::string& name) {
    return "dra.k8s.io/cpu=claim-uid-" + name;
  }
  // A container with the CDI device of the claim, as kubelets ask for it.
  static cri::ContainerConfig Carrier(const std::string& container, const std::string& claim);

  // The capacity of the one device, as schedulers see it; "" without it.
  std::string Capacity() const;
  int64_t Generation() const;
  // All slices of the driver at the server, each as "GENERATION SLICES-OF-THE-POOL/SLICES-THERE:
  // DEVICE CPUS, ...".
  std::string Slices();
  bool SliceSays(int cpus);
  std::string Logs() const;

  static constexpr char kMetadata[] = "/var/lib/kubelet/plugins/cri-resmgr.intel.com/metadata";

  bool metadata_ = false;
  PluginKubelet kubelet_{Path("host")};
};

}  // namespace resmgr::test
