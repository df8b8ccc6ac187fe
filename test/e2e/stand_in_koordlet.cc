// SPDX-License-Identifier: Apache-2.0
#include "test/e2e/stand_in_koordlet.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string_view>

#include <nlohmann/json.hpp>

namespace resmgr::test {
namespace {

namespace api = ::runtime::v1alpha1;
using hooks::HookPoint;
using nlohmann::json;

template <typename Map>
std::string ValueOf(const Map& map, const char* key) {
  const auto found = map.find(key);
  return found == map.end() ? std::string() : found->second;
}

json AnnotationOf(const api::ContainerResourceHookRequest& asked, const char* key) {
  const json value = json::parse(ValueOf(asked.pod_annotations(), key), nullptr, false);
  return value.is_object() ? value : json::object();
}

void AllocateCpus(const api::ContainerResourceHookRequest& asked, const std::string& qos,
                  const std::string& shared_pool, api::LinuxContainerResources& resources) {
  const std::string cpus =
      AnnotationOf(asked, StandInKoordlet::kResourceStatus).value("cpuset", "");
  if (!cpus.empty()) {
    resources.set_cpuset_cpus(cpus);
    resources.set_cpu_quota(-1);
  } else if (qos == "BE") {
    resources.clear_cpuset_cpus();
  } else if (qos == "LS" && !shared_pool.empty()) {
    resources.set_cpuset_cpus(shared_pool);
  }
}

// Amounts of batch resources: milli-CPU and bytes.
void SetBatch(const api::ContainerResourceHookRequest& asked,
              api::LinuxContainerResources& resources) {
  const json containers =
      AnnotationOf(asked, StandInKoordlet::kExtendedSpec).value("containers", json::object());
  const json own = containers.value(asked.container_meta().name(), json::object());
  const json limits = own.value("limits", json::object());
  const int64_t cpu = limits.value("kubernetes.io/batch-cpu", int64_t{0});
  if (cpu > 0) {
    resources.set_cpu_shares(std::clamp<int64_t>(cpu * 1024 / 1000, 2, 262'144));
    resources.set_cpu_quota(std::max<int64_t>(cpu * 100, 1'000));
  }
  const int64_t memory = limits.value("kubernetes.io/batch-memory", int64_t{0});
  if (memory > 0) resources.set_memory_limit_in_bytes(memory);
}

void InjectDevices(const api::ContainerResourceHookRequest& asked,
                   api::ContainerResourceHookResponse& answer) {
  const json gpus = AnnotationOf(asked, StandInKoordlet::kDevices).value("gpu", json::array());
  if (gpus.empty()) return;
  auto& variables = *answer.mutable_container_envs();
  std::string minors;
  for (const json& gpu : gpus)
    minors += (minors.empty() ? "" : ",") + std::to_string(gpu.value("minor", 0));
  variables["NVIDIA_VISIBLE_DEVICES"] = minors;
  if (ValueOf(asked.pod_labels(), StandInKoordlet::kIsolationLabel) != "HAMi-core") return;
  const json resources = gpus[0].value("resources", json::object());
  variables["CUDA_DEVICE_MEMORY_LIMIT"] = resources.value("koordinator.sh/gpu-memory", "");
  variables["CUDA_DEVICE_SM_LIMIT"] = resources.value("koordinator.sh/gpu-core", "");
}

StatusOr<std::string> AnswerContainer(const std::string& bytes, const std::string& shared_pool) {
  api::ContainerResourceHookRequest asked;
  if (!asked.ParseFromString(bytes)) return InvalidArgument("no ContainerResourceHookRequest");
  api::ContainerResourceHookResponse answer;
  *answer.mutable_container_annotations() = asked.container_annotations();
  *answer.mutable_container_resources() = asked.container_resources();
  answer.set_pod_cgroup_parent(asked.pod_cgroup_parent());
  *answer.mutable_container_envs() = asked.container_envs();

  const std::string qos = ValueOf(asked.pod_labels(), StandInKoordlet::kQosLabel);
  api::LinuxContainerResources& resources = *answer.mutable_container_resources();
  AllocateCpus(asked, qos, shared_pool, resources);
  if (qos == "BE") SetBatch(asked, resources);
  if (qos == "LS" && resources.cpu_quota() > 0) {
    const double normalized = static_cast<double>(resources.cpu_quota()) / StandInKoordlet::kRatio;
    resources.set_cpu_quota(static_cast<int64_t>(std::ceil(normalized)));
  }
  InjectDevices(asked, answer);
  return answer.SerializeAsString();
}

template <typename Message>
std::vector<Message> Parsed(const std::vector<std::string>& calls) {
  std::vector<Message> messages(calls.size());
  for (size_t i = 0; i < calls.size(); ++i)
    messages[i].ParseFromString(calls[i]);
  return messages;
}

}  // namespace

StandInKoordlet::StandInKoordlet(const std::string& socket, const std::string& shared_pool)
    : server_(socket) {
  const auto answer_container = [shared_pool](const std::string& bytes) {
    return AnswerContainer(bytes, shared_pool);
  };
  server_.Answer(HookPoint::kPreCreateContainer, answer_container);
  server_.Answer(HookPoint::kPreUpdateContainerResources, answer_container);
  server_.Answer(HookPoint::kPreRunPodSandbox,
                 [](const std::string& bytes) -> StatusOr<std::string> {
                   api::PodSandboxHookRequest asked;
                   if (!asked.ParseFromString(bytes)) return InvalidArgument("no request");
                   api::PodSandboxHookResponse answer;
                   *answer.mutable_labels() = asked.labels();
                   *answer.mutable_annotations() = asked.annotations();
                   answer.set_cgroup_parent(asked.cgroup_parent());
                   *answer.mutable_resources() = asked.resources();
                   return answer.SerializeAsString();
                 });
}

std::string StandInKoordlet::File(const std::string& socket) {
  return json{
      {"remote-endpoint", socket},
      {"failure-policy", "Fail"},
      {"runtime-hooks", {"PreUpdateContainerResources", "PreRunPodSandbox", "PreCreateContainer"}}}
      .dump(1, '\t');
}

std::vector<api::PodSandboxHookRequest> StandInKoordlet::pods() const {
  return Parsed<api::PodSandboxHookRequest>(server_.Calls(HookPoint::kPreRunPodSandbox));
}

std::vector<api::ContainerResourceHookRequest> StandInKoordlet::updates() const {
  return Parsed<api::ContainerResourceHookRequest>(
      server_.Calls(HookPoint::kPreUpdateContainerResources));
}

}  // namespace resmgr::test
