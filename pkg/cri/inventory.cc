// SPDX-License-Identifier: Apache-2.0
#include "pkg/cri/inventory.h"

#include <utility>

#include "pkg/base/field_writer.h"
#include "pkg/cri/handler_aliases.h"
#include "pkg/cri/status_reply.h"
#include "pkg/model/identity.h"

namespace resmgr {

namespace {

namespace v1 = ::runtime::v1;

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

StatusOr<std::vector<SandboxFacts>> ReadPodList(std::string_view reply,
                                                const HandlerAliases* aliases) {
  RESMGR_ASSIGN_OR_RETURN(const auto list, ParseReply<v1::ListPodSandboxResponse>(reply));
  std::vector<SandboxFacts> pods;
  for (const v1::PodSandbox& item : list.items()) {
    SandboxFacts& facts = pods.emplace_back();
    facts.ready = item.state() == v1::SANDBOX_READY;
    Pod& pod = facts.pod;
    pod.id = PodSandboxId(item.id());
    pod.uid = PodUid(item.metadata().uid());
    pod.name = item.metadata().name();
    pod.namespace_name = item.metadata().namespace_();
    pod.runtime_handler = aliases == nullptr
                              ? item.runtime_handler()
                              : aliases->HandlerOf(item.id(), item.runtime_handler());
    pod.labels = ToStringMap(item.labels());
    pod.annotations = ToStringMap(item.annotations());
    pod.qos_derived = true;  // until its status has the class
  }
  return pods;
}

StatusOr<std::vector<ContainerFacts>> ReadContainerList(std::string_view reply) {
  RESMGR_ASSIGN_OR_RETURN(const auto list, ParseReply<v1::ListContainersResponse>(reply));
  std::vector<ContainerFacts> containers;
  for (const v1::Container& item : list.containers()) {
    RuntimeContainer& container = containers.emplace_back().container;
    container.id = ContainerId(item.id());
    container.pod_id = PodSandboxId(item.pod_sandbox_id());
    container.name = item.metadata().name();
    container.attempt = item.metadata().attempt();
    container.state = ToState(item.state());
    container.labels = ToStringMap(item.labels());
    container.annotations = ToStringMap(item.annotations());
    if (container.name.empty()) container.name = ContainerNameOf(container.labels);
  }
  return containers;
}

std::string EncodeVerbosePodStatusRequest(const PodSandboxId& id) {
  return EncodeVerboseRequest(id.value());
}

std::string EncodeVerboseContainerStatusRequest(const ContainerId& id) {
  return EncodeVerboseRequest(id.value());
}

}  // namespace resmgr
