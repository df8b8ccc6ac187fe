// SPDX-License-Identifier: Apache-2.0
#include "pkg/cri/runtime_facts.h"

#include <utility>

#include "pkg/api/message_numbers.h"
#include "pkg/base/wire.h"
#include "pkg/cri/handler_aliases.h"
#include "pkg/cri/status_reply.h"
#include "pkg/model/pod.h"
#include "pkg/model/resource_fields.h"

namespace resmgr {
namespace {

namespace v1 = ::runtime::v1;

uint32_t ProcessId(const Json& info) {
  const auto pid = Number(At(info, {"pid"}));
  return pid && *pid > 0 ? static_cast<uint32_t>(*pid) : 0;
}

std::vector<std::string> AddressesOf(const v1::PodSandboxNetworkStatus& network) {
  std::vector<std::string> addresses;
  if (!network.ip().empty()) addresses.push_back(network.ip());
  for (const v1::PodIP& more : network.additional_ips()) {
    addresses.push_back(more.ip());
  }
  return addresses;
}

// Adds devices from the CRI request that containerd reports.
void AddDevices(const Json& config, ContainerDetails& details) {
  for (const Json& device : At(config, {"devices"})) {
    details.devices.push_back({.container_path = Text(At(device, {"container_path"})).value_or(""),
                               .host_path = Text(At(device, {"host_path"})).value_or(""),
                               .permissions = Text(At(device, {"permissions"})).value_or("")});
  }
  for (const Json& device : At(config, {"CDI_devices"})) {
    if (auto name = Text(At(device, {"name"}))) details.cdi_devices.push_back(*std::move(name));
  }
}

std::optional<Environment> RequestedEnvironmentOf(const Json& config) {
  if (!config.is_object()) return std::nullopt;
  Environment environment;
  for (const Json& variable : At(config, {"envs"})) {
    const auto name = Text(At(variable, {"key"}));
    if (name) environment.Add(*name, Text(At(variable, {"value"})).value_or(""));
  }
  return environment;
}

void Add(const v1::PodSandboxStatusResponse& response, SandboxFacts& facts) {
  const v1::PodSandboxStatus& status = response.status();
  facts.attempt = status.metadata().attempt();
  const Json info = InfoOf(response.info());
  AddInfo(info, facts.pod);
  facts.ready = status.state() == v1::SANDBOX_READY;
  facts.pid = ProcessId(info);
  facts.ips = AddressesOf(status.network());
  const Json& spec = At(info, {"runtimeSpec"});
  facts.cgroups_path = CgroupsPathOf(spec);
  facts.namespaces = NamespacesOf(spec);
}

void Add(const v1::ContainerStatus& status, const Json& info, ContainerFacts& facts) {
  AddStatus(status, info, facts.container);
  facts.pid = ProcessId(info);
  facts.created_at = status.created_at();
  facts.started_at = status.started_at();
  facts.finished_at = status.finished_at();
  facts.exit_code = status.exit_code();
  facts.reason = status.reason();
  facts.message = status.message();
  const v1::ImageSpec& image = status.image();
  facts.image = image.user_specified_image().empty() ? image.image() : image.user_specified_image();
  const Json& spec = At(info, {"runtimeSpec"});
  facts.cgroups_path = CgroupsPathOf(spec);
  facts.namespaces = NamespacesOf(spec);
  facts.details = DetailsOf(spec);
  const Json& config = At(info, {"config"});
  AddDevices(config, facts.details);
  facts.requested_environment = RequestedEnvironmentOf(config);
}

// Reads the identity of a listed sandbox, or of its status.
template <typename Message>
void ReadIdentity(const Message& message, Pod& pod) {
  pod.id = PodSandboxId(message.id());
  pod.uid = PodUid(message.metadata().uid());
  pod.name = message.metadata().name();
  pod.namespace_name = message.metadata().namespace_();
  pod.runtime_handler = message.runtime_handler();
  pod.labels = ToStringMap(message.labels());
  pod.annotations = ToStringMap(message.annotations());
}

template <typename Message>
void ReadIdentity(const Message& message, RuntimeContainer& container) {
  container.id = ContainerId(message.id());
  container.name = message.metadata().name();
  container.attempt = message.metadata().attempt();
  container.labels = ToStringMap(message.labels());
  container.annotations = ToStringMap(message.annotations());
}

std::string EncodeVerboseRequest(std::string_view id) {
  std::string bytes;
  {
    FieldWriter request(bytes);
    request.Bytes(1, id);
    request.Number(2, 1);
  }
  return bytes;
}

}  // namespace

Status AddFacts(std::string_view reply, SandboxFacts& listed) {
  RESMGR_ASSIGN_OR_RETURN(const auto response, ParseReply<v1::PodSandboxStatusResponse>(reply));
  Add(response, listed);
  return OkStatus();
}

Status AddFacts(std::string_view reply, ContainerFacts& listed) {
  RESMGR_ASSIGN_OR_RETURN(const auto response, ParseReply<v1::ContainerStatusResponse>(reply));
  Add(response.status(), InfoOf(response.info()), listed);
  return OkStatus();
}

StatusOr<SandboxFacts> ReadSandboxFacts(std::string_view reply) {
  RESMGR_ASSIGN_OR_RETURN(const auto response, ParseReply<v1::PodSandboxStatusResponse>(reply));
  SandboxFacts facts;
  ReadIdentity(response.status(), facts.pod);
  Add(response, facts);
  return facts;
}

StatusOr<ContainerFacts> ReadContainerFacts(std::string_view reply) {
  RESMGR_ASSIGN_OR_RETURN(const auto response, ParseReply<v1::ContainerStatusResponse>(reply));
  const v1::ContainerStatus& status = response.status();
  const Json info = InfoOf(response.info());
  ContainerFacts facts;
  facts.container.pod_id = PodSandboxId(Text(At(info, {"sandboxID"})).value_or(""));
  ReadIdentity(status, facts.container);
  Add(status, info, facts);
  return facts;
}

StatusOr<ImageFacts> ReadImageFacts(std::string_view reply, std::string_view reference) {
  RESMGR_ASSIGN_OR_RETURN(const auto response, ParseReply<v1::ImageStatusResponse>(reply));
  if (!response.has_image()) return NotFound("the runtime has no image {}", reference);
  const Json info = InfoOf(response.info());
  const Json& config = At(info, {"imageSpec", "config"});
  ImageFacts facts;
  facts.entrypoint = TextsOf(At(config, {"Entrypoint"}));
  facts.command = TextsOf(At(config, {"Cmd"}));
  facts.environment = EnvironmentOf(At(config, {"Env"}));
  const auto& digests = response.image().repo_digests();
  if (!digests.empty()) facts.digest = digests[0];
  return facts;
}

StatusOr<std::vector<SandboxFacts>> ReadPodList(std::string_view reply,
                                                const HandlerAliases* aliases) {
  RESMGR_ASSIGN_OR_RETURN(const auto list, ParseReply<v1::ListPodSandboxResponse>(reply));
  std::vector<SandboxFacts> pods;
  for (const v1::PodSandbox& item : list.items()) {
    SandboxFacts& facts = pods.emplace_back();
    facts.ready = item.state() == v1::SANDBOX_READY;
    Pod& pod = facts.pod;
    ReadIdentity(item, pod);
    if (aliases != nullptr) {
      pod.runtime_handler = aliases->HandlerOf(item.id(), item.runtime_handler());
    }
    pod.qos_derived = true;  // until the pod's status has the QoS class
  }
  return pods;
}

StatusOr<std::vector<ContainerFacts>> ReadContainerList(std::string_view reply) {
  RESMGR_ASSIGN_OR_RETURN(const auto list, ParseReply<v1::ListContainersResponse>(reply));
  std::vector<ContainerFacts> containers;
  for (const v1::Container& item : list.containers()) {
    RuntimeContainer& container = containers.emplace_back().container;
    ReadIdentity(item, container);
    container.pod_id = PodSandboxId(item.pod_sandbox_id());
    container.state = ToState(item.state());
    if (container.name.empty()) container.name = ContainerNameOf(container.labels);
  }
  return containers;
}

std::string EncodeVerboseImageStatusRequest(std::string_view reference) {
  v1::ImageStatusRequest request;
  request.mutable_image()->set_image(std::string(reference));
  request.set_verbose(true);
  return request.SerializeAsString();
}

std::string EncodeVerbosePodStatusRequest(const PodSandboxId& id) {
  return EncodeVerboseRequest(id.value());
}

std::string EncodeVerboseContainerStatusRequest(const ContainerId& id) {
  return EncodeVerboseRequest(id.value());
}

std::string EncodeUpdateRequest(const ContainerId& id, const ResourceChange& change) {
  v1::UpdateContainerResourcesRequest request;
  request.set_container_id(std::string(id.value()));
  v1::LinuxContainerResources& linux = *request.mutable_linux();
  const LinuxResources& resources = change.resources;
  for (const NumberField& number : kNumberFields) {
    const auto value = number.requested != nullptr ? resources.*number.requested : std::nullopt;
    if (value) SetNumberAt(linux, number.cri_number, *value);
  }
  linux.set_memory_swap_limit_in_bytes(change.memory_swap_limit.value_or(0));
  linux.set_cpuset_cpus(resources.cpuset_cpus.value_or(""));
  linux.set_cpuset_mems(resources.cpuset_mems.value_or(""));
  for (const auto& [page_size, limit] : resources.hugepage_limits) {
    v1::HugepageLimit& entry = *linux.add_hugepage_limits();
    entry.set_page_size(page_size);
    entry.set_limit(limit);
  }
  for (const auto& [file, value] : change.unified) {
    (*linux.mutable_unified())[std::string(file)] = std::string(value);
  }
  return request.SerializeAsString();
}

}  // namespace resmgr
