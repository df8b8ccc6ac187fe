// SPDX-License-Identifier: Apache-2.0
#include "test/e2e/node.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <utility>

#include <fmt/format.h>

#include "pkg/api/config.pb.h"
#include "test/support/cri_client/specs.h"

namespace resmgr::test {
namespace {

constexpr int64_t kMilli = 1000;
// The limit for commands that certainly end, also on a busy machine.
constexpr std::chrono::seconds kCtlTimeout{60};
constexpr std::chrono::seconds kEndTimeout{60};
constexpr std::string_view kCtl = RESMGR_BINARY_DIR "/cmd/cri-resmgr-ctl/cri-resmgr-ctl";

}  // namespace

Workload Guaranteed(const std::string& name, int cpus) {
  return Sized(name, MilliCpu{cpus * kMilli});
}

Workload Sized(const std::string& name, MilliCpu cpu) {
  return {.name = name, .qos = QosClass::kGuaranteed, .cpu_request = cpu, .cpu_limit = cpu};
}

Workload Burstable(const std::string& name, MilliCpu request) {
  return {.name = name, .qos = QosClass::kBurstable, .cpu_request = request, .cpu_limit = {}};
}

Workload BestEffort(const std::string& name) {
  return {.name = name, .qos = QosClass::kBestEffort, .cpu_request = {}, .cpu_limit = {}};
}

StatusOr<std::unique_ptr<Node>> Node::OnContainerd(Options options) {
  std::unique_ptr<Node> node(new Node(options));
  RESMGR_ASSIGN_OR_RETURN(node->containerd_, Containerd::Start());
  node->directory_ = node->containerd_->directory();
  RESMGR_RETURN_IF_ERROR(node->Open([containerd = node->containerd_.get()](const std::string& id) {
    return containerd->AllowedCpus(id);
  }));
  return node;
}

StatusOr<std::unique_ptr<Node>> Node::OnFakeRuntime(int cpus, Options options) {
  std::unique_ptr<Node> node(new Node(options));
  std::string directory = "/tmp/resmgr-XXXXXX";
  if (::mkdtemp(directory.data()) == nullptr) {
    return Unavailable("cannot make a directory in /tmp: {}", std::strerror(errno));
  }
  node->directory_ = directory;
  node->topology_ = fmt::format("synthetic:package:1 core:{} pu:1", cpus);
  FakeRuntime::Options fake;
  fake.store.cpus = cpus;
  fake.record = false;
  node->fake_ = std::make_unique<FakeRuntime>(fake);
  RESMGR_RETURN_IF_ERROR(node->fake_->Start(node->RuntimeSocket()));
  RESMGR_RETURN_IF_ERROR(
      node->Open([self = node.get()](const std::string& id) { return self->FakeCpus(id); }));
  return node;
}

Node::~Node() {
  watch_.reset();
  relay_.reset();
  if (fake_ == nullptr) return;  // containerd removes its directory itself
  fake_.reset();
  std::error_code ignored;
  std::filesystem::remove_all(directory_, ignored);
}

Status Node::Open(PlacementWatch::Reader cpus) {
  watch_ = std::make_unique<PlacementWatch>(std::move(cpus));
  runtime_ = std::make_unique<CriClient>(RuntimeSocket(), options_.version);
  if (options_.relayed || options_.nri_plugin) return StartRelay();
  client_ = std::make_unique<CriClient>(RuntimeSocket(), options_.version);
  return OkStatus();
}

std::vector<std::string> Node::Flags() const {
  std::vector<std::string> flags = {
      "-topology",     topology_,     "-runtime-socket", RuntimeSocket(),  "-relay-socket",
      RelaySocket(),   "-relay-dir",  StateDirectory(),  "-config-socket", ConfigSocket(),
      "-admin-socket", AdminSocket(), "-agent-socket",   "disabled"};
  if (!options_.policy.empty()) flags.insert(flags.end(), {"-policy", options_.policy});
  if (!options_.reserved.empty()) {
    flags.insert(flags.end(), {"-reserved-resources", "CPU=" + options_.reserved});
  }
  if (!options_.config.empty()) {
    flags.insert(flags.end(), {"-config", directory_ / "node.yaml"});
  }
  if (options_.nri_plugin) {
    flags.insert(flags.end(), {"-mode", "nri-plugin", "-nri-socket", containerd_->nri_socket()});
  }
  if (options_.knows_pods_cgroup) {
    const std::string pod =
        containerd_->CgroupParent(QosClass::kGuaranteed, "", options_.cgroup_names);
    flags.insert(flags.end(), {"-pods-cgroup", pod.substr(0, pod.rfind('/'))});
  }
  if (options_.hook_servers) flags.insert(flags.end(), {"-hook-dir", HookDirectory()});
  if (options_.nri_host) flags.insert(flags.end(), {"-nri-host", HostSocket()});
  return flags;
}

void Node::ConnectClient() {
  client_ = std::make_unique<CriClient>(options_.nri_plugin ? RuntimeSocket() : RelaySocket(),
                                        options_.version);
}

Status Node::StartRelay() {
  if (!options_.config.empty()) std::ofstream(directory_ / "node.yaml") << options_.config;
  RESMGR_ASSIGN_OR_RETURN(relay_, DaemonProcess::Start(Flags(), directory_ / "relay.log"));
  ConnectClient();
  return OkStatus();
}

Status Node::TakeOver() {
  std::vector<std::string> flags = Flags();
  flags.emplace_back("-take-over");
  RESMGR_ASSIGN_OR_RETURN(std::unique_ptr<DaemonProcess> successor,
                          DaemonProcess::Start(flags, directory_ / "relay.log"));
  RESMGR_ASSIGN_OR_RETURN(const int exit_code, relay_->process().Wait(kEndTimeout));
  if (exit_code != 0) return Internal("the daemon before ended with {}", exit_code);
  relay_ = std::move(successor);
  ConnectClient();
  return OkStatus();
}

Status Node::Deliver(const std::string& policy) {
  v1::SetConfigRequest request;
  (*request.mutable_config())["policy"] = policy;
  CriClient agent(ConfigSocket());
  const CallResult answer =
      agent.Call("/v1.Config/SetConfig", {request.SerializeAsString()}, CallOptions{});
  RESMGR_RETURN_IF_ERROR(FromGrpc(answer.status));
  v1::SetConfigReply reply;
  if (answer.messages.size() != 1 || !reply.ParseFromString(answer.messages.front())) {
    return Internal("the daemon's answer is no SetConfigReply");
  }
  return reply.error().empty() ? OkStatus() : InvalidArgument("{}", reply.error());
}

Status Node::RestartContainerd() {
  RESMGR_RETURN_IF_ERROR(containerd_->Restart());
  runtime_ = std::make_unique<CriClient>(RuntimeSocket(), options_.version);
  if (!options_.relayed || options_.nri_plugin)
    client_ = std::make_unique<CriClient>(RuntimeSocket(), options_.version);
  return OkStatus();
}

bool Node::RelayLogs(std::string_view text) const {
  constexpr std::chrono::minutes kPatience{1};
  return WaitUntil("the log", kPatience,
                   [&] { return WholeRelayLog().find(text) != std::string::npos; })
      .ok();
}

bool Node::HasVersion() {
  cri::VersionResponse response;
  return runtime_->Unary("Version", cri::VersionRequest(), &response).error_code() !=
         grpc::StatusCode::UNIMPLEMENTED;
}

cri::PodSandboxConfig Node::PodConfig(const Workload& workload) const {
  const std::string uid = "uid-" + workload.name;
  const std::string cgroup_parent =
      containerd_ == nullptr ? ""
                             : containerd_->CgroupParent(workload.qos, uid, options_.cgroup_names);
  cri::PodSandboxConfig config = MakePod({.name = workload.name,
                                          .namespace_name = workload.namespace_name,
                                          .uid = uid,
                                          .qos = workload.qos,
                                          .cgroup_parent = cgroup_parent});
  config.clear_hostname();  // the pod has the host's
  config.set_log_directory(PodLogs());
  return config;
}

cri::ContainerConfig Node::ContainerConfig(const Workload& workload) {
  cri::ContainerConfig config = MakeContainer({.name = workload.name,
                                               .attempt = workload.attempt,
                                               .cpu_request = workload.cpu_request,
                                               .cpu_limit = workload.cpu_limit,
                                               .memory_limit = workload.memory_limit});
  config.set_log_path(fmt::format("{}_{}.log", workload.name, workload.attempt));
  if (!workload.command.empty()) {
    config.clear_args();
    config.mutable_command()->Assign(workload.command.begin(), workload.command.end());
  }
  return config;
}

StatusOr<RunningPod> Node::Run(const Workload& workload) {
  RunningPod pod = NewPod(workload);
  RESMGR_ASSIGN_OR_RETURN(pod.pod_id, client_->RunPod(pod.config));
  RESMGR_RETURN_IF_ERROR(StartContainer(workload, &pod));
  return pod;
}

Status Node::StartContainer(const Workload& workload, RunningPod* pod) {
  pod->workload = workload;
  RESMGR_ASSIGN_OR_RETURN(pod->container_id, client_->CreateContainer(pod->pod_id, pod->config,
                                                                      ContainerConfig(workload)));
  Watch(*pod);
  return client_->StartContainer(pod->container_id);
}

Status Node::Resize(const Workload& workload, RunningPod* pod) {
  watch_->Add(pod->container_id, workload.name, /*exclusive=*/false);
  RESMGR_RETURN_IF_ERROR(
      client_->UpdateContainer(pod->container_id, ContainerConfig(workload).linux().resources()));
  pod->workload = workload;
  return OkStatus();
}

void Node::Watch(const RunningPod& pod) {
  watch_->Add(pod.container_id, pod.workload.name,
              options_.starts_alone && pod.workload.Exclusive());
}

Status Node::Remove(const RunningPod& pod) {
  RESMGR_RETURN_IF_ERROR(client_->StopContainer(pod.container_id));
  watch_->Remove(pod.container_id);
  RESMGR_RETURN_IF_ERROR(client_->RemoveContainer(pod.container_id));
  RESMGR_RETURN_IF_ERROR(client_->StopPod(pod.pod_id));
  return client_->RemovePod(pod.pod_id);
}

StatusOr<std::string> Node::Ctl(const Words& command) const {
  const std::filesystem::path output = directory_ / "ctl.out";
  std::filesystem::remove(output);
  Words words = {std::string(kCtl), "-socket", AdminSocket(), "-o", "json"};
  words.insert(words.end(), command.begin(), command.end());
  const Status ended = RunProgram(words, output, kCtlTimeout);
  std::string text = TextOf(output);
  if (ended.ok()) return text;
  // An audit that finds something exits with 3, after its report and a line on stderr.
  if (command.empty() || command[0] != "audit" || !text.starts_with('{')) return ended;
  text.erase(std::min(text.size(), text.rfind("cri-resmgr-ctl: ")));
  return text;
}

StatusOr<CpuSet> Node::CpusInside(const RunningPod& pod) {
  RESMGR_ASSIGN_OR_RETURN(const std::string list, client_->AllowedCpus(pod.container_id));
  return CpuSet::Parse(list);
}

std::optional<CpuSet> Node::FakeCpus(const std::string& container_id) {
  const auto container = fake_->FindContainer(container_id);
  if (!container || container->state != cri::CONTAINER_RUNNING) return std::nullopt;
  const auto cpus = CpuSet::Parse(container->resources.cpuset_cpus());
  if (!cpus.ok()) return std::nullopt;
  return cpus->empty() ? CpuSet::Range(0, CpuSet::kMaxId) : *cpus;
}

}  // namespace resmgr::test
