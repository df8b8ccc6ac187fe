// SPDX-License-Identifier: Apache-2.0
#include "test/e2e/docker/docker_pods.h"

#include <charconv>
#include <chrono>
#include <fstream>
#include <optional>

#include <fmt/format.h>

#include "test/e2e/docker/raw_http.h"
#include "test/support/dockerd/dockerd.h"

namespace resmgr::test {
namespace {

using Json = nlohmann::json;

// A start may take long on a busy machine, and longest on an emulated one.
constexpr std::chrono::milliseconds kSilence{120'000};
constexpr int64_t kPeriod = 100'000;
constexpr std::string_view kLabel = "io.kubernetes.";
// Ends on SIGTERM at once.
constexpr std::string_view kScript = "trap exit TERM; while :; do sleep 0.1; done";

// The CPUs that the process may use.
CpuSet CpusOfProcess(int64_t pid) {
  constexpr std::string_view kField = "Cpus_allowed_list:";
  std::ifstream file(fmt::format("/proc/{}/status", pid));
  for (std::string word, list; file >> word;) {
    if (word == kField && file >> list) return CpuSet::Parse(list).value_or(CpuSet());
  }
  return {};
}

Status StatusOf(const DockerPods::Reply& reply) {
  if (reply.status >= 200 && reply.status < 400) return OkStatus();
  return Internal("status {}: {}", reply.status, reply.body.dump());
}

}  // namespace

DockerPod BurstableDockerPod(const std::string& name, int milli_cpus) {
  return {.name = name, .qos = "burstable", .shares = milli_cpus * 1024 / 1000};
}

DockerPod GuaranteedDockerPod(const std::string& name, int cpus) {
  return {.name = name, .qos = "", .shares = cpus * 1024, .quota = cpus * kPeriod};
}

DockerPods::Reply DockerPods::Ask(std::string_view method, const std::string& target,
                                  const Json& body, const std::string& before) const {
  auto connection = RawHttp::Connect(socket_);
  if (!connection.ok()) return {.body = Describe(connection.status())};
  const std::string text = body.is_null() ? "" : body.dump();
  connection->Send(
      fmt::format("{} {}/v1.40{} HTTP/1.0\r\nHost: d\r\n"
                  "Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{}",
                  method, before, target, text.size(), text));
  const std::string bytes = connection->ReadAll(kSilence);
  Reply reply;
  constexpr size_t kBeforeStatus = std::string_view("HTTP/1.1 ").size();
  if (bytes.size() > kBeforeStatus) {
    std::from_chars(bytes.data() + kBeforeStatus, bytes.data() + bytes.size(), reply.status);
  }
  const size_t head = bytes.find("\r\n\r\n");
  // A reply of HTTP/1.0 has no chunks.
  if (head != std::string::npos) reply.body = Json::parse(bytes.substr(head + 4), nullptr, false);
  return reply;
}

std::string DockerPods::CgroupOf(const DockerPod& pod) const {
  const std::string qos = pod.qos.empty() ? "" : "/" + pod.qos;
  return fmt::format("{}/kubepods{}/poduid-{}", parent_, qos, pod.name);
}

std::string DockerPods::NameOf(const DockerPod& pod, std::string_view container) const {
  const uint32_t attempt = container == "POD" ? 0 : pod.attempt;
  return fmt::format("k8s_{}_{}_shop_uid-{}_{}", container, pod.name, pod.name, attempt);
}

Json DockerPods::LabelsOf(const DockerPod& pod, std::string_view container) {
  const std::string label(kLabel);
  const bool sandbox = container == "POD";
  Json labels = {{label + "container.name", container},
                 {label + "docker.type", sandbox ? "podsandbox" : "container"},
                 {label + "pod.name", pod.name},
                 {label + "pod.namespace", "shop"},
                 {label + "pod.uid", "uid-" + pod.name}};
  if (sandbox) {
    labels["app"] = pod.name;
    labels["annotation.kubernetes.io/config.source"] = "api";
  } else {
    labels[label + "sandbox.id"] = pod.sandbox_id;
    labels["annotation." + label + "container.hash"] = "f00";
  }
  for (const auto& [key, value] : pod.labels)
    labels[key] = value;
  return labels;
}

Status DockerPods::RunSandbox(DockerPod& pod) const {
  const Json body = {{"Image", Dockerd::kPauseImage},
                     {"Labels", LabelsOf(pod, "POD")},
                     {"HostConfig",
                      {{"NetworkMode", "none"},
                       {"CgroupParent", CgroupOf(pod)},
                       {"CpuShares", 2},
                       {"IpcMode", "shareable"}}}};
  const Reply made = Ask("POST", "/containers/create?name=" + NameOf(pod, "POD"), body);
  RESMGR_RETURN_IF_ERROR(StatusOf(made));
  pod.sandbox_id = made.body.value("Id", "");
  return StatusOf(Ask("POST", "/containers/" + pod.sandbox_id + "/start"));
}

DockerPods::Reply DockerPods::Create(DockerPod& pod, const std::vector<std::string>& environment,
                                     const Form& form) const {
  Json host = {{"NetworkMode", "container:" + pod.sandbox_id},
               {"IpcMode", "container:" + pod.sandbox_id},
               {"CgroupParent", CgroupOf(pod)},
               {"CpuShares", pod.shares},
               {"CpuPeriod", kPeriod},
               {"Memory", 0},
               {"Binds", nullptr}};
  if (pod.quota != 0) host["CpuQuota"] = pod.quota;
  if (!pod.restart_policy.empty()) host["RestartPolicy"] = {{"Name", pod.restart_policy}};
  if (pod.nano_cpus != 0) {
    host["NanoCpus"] = pod.nano_cpus;
    host.erase("CpuPeriod");
  }
  Json body = {{"Image", Dockerd::kBusyboxImage},
               {"Cmd", {"-c", kScript}},
               {"Env", environment},
               {"Labels", LabelsOf(pod, pod.name)},
               {"StopSignal", "SIGTERM"}};
  if (form.beside_config) {
    body.update(host);
  } else {
    body["HostConfig"] = host;
  }
  Reply made = Ask("POST", "/containers/create?name=" + NameOf(pod, pod.name), body, form.before);
  pod.container_id = made.body.is_object() ? made.body.value("Id", "") : "";
  return made;
}

Status DockerPods::Start(const DockerPod& pod) const {
  return StatusOf(Ask("POST", "/containers/" + pod.container_id + "/start"));
}

Status DockerPods::Run(DockerPod& pod) const {
  RESMGR_RETURN_IF_ERROR(RunSandbox(pod));
  RESMGR_RETURN_IF_ERROR(StatusOf(Create(pod)));
  return Start(pod);
}

DockerPods::Reply DockerPods::Update(const DockerPod& pod, const Json& resources) const {
  return Ask("POST", "/containers/" + pod.container_id + "/update", resources);
}

Status DockerPods::Stop(const std::string& id) const {
  return StatusOf(Ask("POST", "/containers/" + id + "/stop?t=10"));
}

Status DockerPods::Remove(const DockerPod& pod) const {
  for (const std::string& id : {pod.container_id, pod.sandbox_id}) {
    RESMGR_RETURN_IF_ERROR(Stop(id));
    RESMGR_RETURN_IF_ERROR(StatusOf(Ask("DELETE", "/containers/" + id + "?v=1")));
  }
  return OkStatus();
}

Json DockerPods::Inspect(const std::string& id) const {
  return Ask("GET", "/containers/" + id + "/json").body;
}

CpuSet DockerPods::CpusInside(const DockerPod& pod) const {
  const Json told = Inspect(pod.container_id);
  if (!told.is_object() || !told.contains("State")) return {};
  const int64_t pid = told["State"].value("Pid", int64_t{0});
  return pid > 0 ? CpusOfProcess(pid) : CpuSet();
}

}  // namespace resmgr::test
