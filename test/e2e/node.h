// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pkg/base/status.h"
#include "pkg/base/units.h"
#include "pkg/model/pod.h"
#include "pkg/topology/cpu_set.h"
#include "test/e2e/placement_watch.h"
#include "test/support/containerd/child_process.h"
#include "test/support/containerd/containerd.h"
#include "test/support/cri_client/cri_client.h"
#include "test/support/fake_runtime/fake_runtime.h"

namespace resmgr::test {

// A pod with one container of the same name.
struct Workload {
  std::string name;
  QosClass qos = QosClass::kBestEffort;
  MilliCpu cpu_request;
  MilliCpu cpu_limit;
  Bytes memory_limit{};                // 0: none
  uint32_t attempt = 0;                // of the container
  std::vector<std::string> command{};  // empty: it sleeps
  std::string namespace_name = "default";

  // True if the static policy gives the container CPUs of its own.
  bool Exclusive() const { return qos == QosClass::kGuaranteed && cpu_request.IsWhole(); }
};

Workload Guaranteed(const std::string& name, int cpus);
Workload Sized(const std::string& name, MilliCpu cpu);  // the same with any amount
Workload Burstable(const std::string& name, MilliCpu request);
Workload BestEffort(const std::string& name);

// A workload on the node.
struct RunningPod {
  Workload workload;
  cri::PodSandboxConfig config;
  std::string pod_id;
  std::string container_id;
};

// A whole node: a runtime, the built cri-resmgr in front of it, with the static policy and CPU 0
// reserved unless its options say otherwise, and a client in the place of the kubelet. All the time
// a watch looks for shared containers on exclusive CPUs. Thread-compatible.
class Node {
 public:
  struct Options {
    ApiVersion version = ApiVersion::kV1;
    // Without the relay the client speaks to the runtime itself.
    bool relayed = true;
    // In place of the relay: cri-resmgr is a plugin of the runtime's NRI. Needs containerd 1.7.
    bool nri_plugin = false;
    // The relay hosts NRI plugins on HostSocket().
    bool nri_host = false;
    // The relay asks the hook servers whose files are in HookDirectory().
    bool hook_servers = false;
    // "": the policy of a delivered configuration, null until then.
    std::string policy = "static";
    // The text after "CPU="; "" reserves nothing.
    std::string reserved = "cpuset:0";
    // The policy has containers of Guaranteed workloads alone on their CPUs from the moment when
    // they start; else the watch takes them for shared ones.
    bool starts_alone = true;
    // cri-resmgr is told where the pods' cgroup is, which is not at the top.
    bool knows_pods_cgroup = false;
    // The text of its configuration's file; "": none.
    std::string config{};
    Containerd::CgroupNames cgroup_names = Containerd::CgroupNames::kCgroupfs;
  };

  // containerd and runc, on this machine as it is.
  static StatusOr<std::unique_ptr<Node>> OnContainerd(Options options);
  // The fake runtime on a synthetic machine of so many CPUs.
  static StatusOr<std::unique_ptr<Node>> OnFakeRuntime(int cpus, Options options);

  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;
  ~Node();

  // The directory that is kept over restarts of cri-resmgr.
  std::filesystem::path StateDirectory() const { return directory_ / "relay-state"; }
  // Where agents deliver configurations.
  std::filesystem::path ConfigSocket() const { return directory_ / "config.sock"; }

  // Starts cri-resmgr with the same flags as the first time, and connects the client anew.
  Status StartRelay();
  // Starts another cri-resmgr that takes the sockets of the one that serves, which ends.
  Status TakeOver();
  // After containerd().Kill(): starts it again, and connects the client that asks it directly anew.
  Status RestartContainerd();

  // The runtime serves the CRI's version that the client speaks; containerd 2 has no v1alpha2.
  bool HasVersion();

  // Delivers this policy section of a configuration as an agent does.
  Status Deliver(const std::string& policy);

  CriClient& client() { return *client_; }
  // Asks the runtime itself.
  CriClient& runtime() { return *runtime_; }
  Containerd& containerd() { return *containerd_; }
  DaemonProcess& relay() { return *relay_; }
  PlacementWatch& watch() { return *watch_; }
  std::string RelayLog() const { return LastLines(directory_ / "relay.log"); }
  // The whole log, of all lives of the relay.
  std::string WholeRelayLog() const { return TextOf(directory_ / "relay.log"); }

  // Whether the relay logs this within a minute: a line is written after its event.
  bool RelayLogs(std::string_view text) const;

  // The socket on which NRI plugins connect to the relay.
  std::filesystem::path HostSocket() const { return directory_ / "nri-host.sock"; }

  std::filesystem::path HookDirectory() const { return directory_ / "hooks.d"; }

  // The pod as a kubelet describes it, on this runtime. Logs land in PodLogs().
  cri::PodSandboxConfig PodConfig(const Workload& workload) const;
  std::filesystem::path PodLogs() const { return directory_ / "logs"; }
  static cri::ContainerConfig ContainerConfig(const Workload& workload);

  // A pod of this workload that does not run yet.
  RunningPod NewPod(const Workload& workload) const {
    return {.workload = workload, .config = PodConfig(workload), .pod_id = "", .container_id = ""};
  }
  // Creates the pod and its container and starts it.
  StatusOr<RunningPod> Run(const Workload& workload);
  // Starts another container of this workload in an existing pod.
  Status StartContainer(const Workload& workload, RunningPod* pod);
  // Stops and removes the container, then the pod.
  Status Remove(const RunningPod& pod);
  // Asks for another size of the container, as a kubelet does for an in-place resize. From then on
  // the watch takes it for a shared one, until Watch() says otherwise.
  Status Resize(const Workload& workload, RunningPod* pod);
  // Lets the watch take the container for exclusive or shared, as its workload is.
  void Watch(const RunningPod& pod);

  // The JSON that cri-resmgr-ctl prints for this command.
  using Words = std::vector<std::string>;
  StatusOr<std::string> Ctl(const std::string& command) const { return Ctl(Words{command}); }
  StatusOr<std::string> Ctl(const Words& command) const;

  // Cpus_allowed_list, read inside the container.
  StatusOr<CpuSet> CpusInside(const RunningPod& pod);

 private:
  explicit Node(Options options) : options_(std::move(options)) {}

  std::filesystem::path RuntimeSocket() const { return directory_ / "containerd.sock"; }
  std::filesystem::path RelaySocket() const { return directory_ / "relay.sock"; }
  std::filesystem::path AdminSocket() const { return directory_ / "admin.sock"; }
  Status Open(PlacementWatch::Reader cpus);
  std::vector<std::string> Flags() const;
  void ConnectClient();
  std::optional<CpuSet> FakeCpus(const std::string& container_id);

  const Options options_;
  std::filesystem::path directory_;
  std::string topology_ = "live";
  std::unique_ptr<Containerd> containerd_;  // one of the two
  std::unique_ptr<FakeRuntime> fake_;
  std::unique_ptr<DaemonProcess> relay_;
  std::unique_ptr<CriClient> runtime_;
  std::unique_ptr<CriClient> client_;
  std::unique_ptr<PlacementWatch> watch_;
};

}  // namespace resmgr::test
