// SPDX-License-Identifier: Apache-2.0
#include "pkg/hooks/hook_messages.h"

#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "pkg/api/message_numbers.h"
#include "pkg/api/runtimehook.pb.h"
#include "pkg/base/utf8.h"
#include "pkg/base/wire.h"
#include "pkg/model/resource_fields.h"

namespace resmgr::hooks {
namespace {

void Fill(const StringMap& from, HookMap& to) {
  for (const auto& [key, value] : from)
    to[Utf8Repaired(key)] = Utf8Repaired(value);
}

void SetNumbers(const LinuxResources& from, api::LinuxContainerResources& to) {
  for (const NumberField& number : kNumberFields) {
    const auto value = number.requested != nullptr ? from.*number.requested : std::nullopt;
    if (value) SetNumberAt(to, number.cri_number, *value);
  }
}

void SetHugepageLimits(const std::map<std::string, uint64_t>& from,
                       api::LinuxContainerResources& to) {
  std::map<std::string, api::HugepageLimit*> present;
  for (api::HugepageLimit& limit : *to.mutable_hugepage_limits())
    present[limit.page_size()] = &limit;
  for (const auto& [size, bytes] : from) {
    api::HugepageLimit*& limit = present[Utf8Repaired(size)];
    if (limit == nullptr) limit = to.add_hugepage_limits();
    limit->set_page_size(Utf8Repaired(size));
    limit->set_limit(bytes);
  }
}

void Overlay(const LinuxResources& from, api::LinuxContainerResources& to) {
  SetNumbers(from, to);
  if (from.cpuset_cpus) to.set_cpuset_cpus(Utf8Repaired(*from.cpuset_cpus));
  if (from.cpuset_mems) to.set_cpuset_mems(Utf8Repaired(*from.cpuset_mems));
  SetHugepageLimits(from.hugepage_limits, to);
}

// TakeUpdate for maps.
template <typename Map>
void TakeDifferent(const Map& before, const Map& after, Map& held) {
  for (const auto& [key, value] : before)
    if (!after.contains(key)) held.erase(key);
  for (const auto& [key, value] : after) {
    const auto found = before.find(key);
    if (found == before.end() || found->second != value) held[key] = value;
  }
}

std::map<std::string, uint64_t> HugepageLimitsOf(const api::LinuxContainerResources& resources) {
  std::map<std::string, uint64_t> limits;
  for (const api::HugepageLimit& limit : resources.hugepage_limits())
    limits[limit.page_size()] = limit.limit();
  return limits;
}

// TakeUpdate for resources. No update removes a limit of huge pages.
void TakeDifferent(const api::LinuxContainerResources& before,
                   const api::LinuxContainerResources& after, api::LinuxContainerResources& held) {
  for (const NumberField& number : kNumberFields) {
    const int64_t value = NumberAt(after, number.cri_number).value_or(0);
    if (value != NumberAt(before, number.cri_number).value_or(0)) {
      SetNumberAt(held, number.cri_number, value);
    }
  }
  if (after.cpuset_cpus() != before.cpuset_cpus()) held.set_cpuset_cpus(after.cpuset_cpus());
  if (after.cpuset_mems() != before.cpuset_mems()) held.set_cpuset_mems(after.cpuset_mems());
  std::map<std::string, uint64_t> limits;
  TakeDifferent(HugepageLimitsOf(before), HugepageLimitsOf(after), limits);
  SetHugepageLimits(limits, held);
  TakeDifferent(before.unified(), after.unified(), *held.mutable_unified());
}

// Adds the CRI's resources that LinuxResources does not have.
void OverlayDetails(const ContainerDetails& from, api::LinuxContainerResources& to) {
  if (from.memory_swap_limit) to.set_memory_swap_limit_in_bytes(*from.memory_swap_limit);
  Fill(from.unified, *to.mutable_unified());
}

using HookRequest = api::ContainerResourceHookRequest;

// Writes an entry of a map of strings as protobuf does, without its repeated check of the text.
void AddEntry(uint32_t field, std::string_view key, std::string_view value, FieldWriter& fields) {
  const size_t begin = fields.Begin(field);
  fields.Bytes(1, key);
  fields.Bytes(2, value);
  fields.End(begin);
}

using HookResponse = ::runtime::v1alpha1::ContainerResourceHookResponse;
using Variable = std::pair<std::string_view, std::string_view>;

// Parses an entry of a map of strings. nullopt: it has further fields.
std::optional<Variable> ReadEntry(std::string_view entry) {
  Variable variable;
  WireReader reader(entry);
  while (reader.Next()) {
    if (!reader.is_bytes() || reader.field() > 2) return std::nullopt;
    (reader.field() == 1 ? variable.first : variable.second) = reader.bytes();
  }
  if (reader.failed()) return std::nullopt;
  return variable;
}

}  // namespace

bool HasEntry(const HookMap& map, const std::string& key, const std::string& value) {
  const auto found = map.find(key);
  return found != map.end() && found->second == value;
}

HookEnvironment ToHookEnvironment(Environment environment) {
  bool is_ascii = true;
  for (size_t i = 0; i < environment.size(); ++i)
    is_ascii = is_ascii && IsAscii(environment.Text(i));
  if (is_ascii) return std::make_shared<const Environment>(std::move(environment));
  auto repaired = std::make_shared<Environment>();
  for (const auto& [name, value] : environment)
    repaired->Add(Utf8Repaired(name), Utf8Repaired(value));
  return repaired;
}

std::string EncodedPodPart(const api::PodSandboxHookRequest& pod, bool resources) {
  std::string encoded;
  {
    FieldWriter fields(encoded);
    fields.Bytes(HookRequest::kPodMetaFieldNumber, pod.pod_meta().SerializeAsString());
    if (resources) {
      fields.Bytes(HookRequest::kPodResourcesFieldNumber, pod.resources().SerializeAsString());
    }
    for (const auto& [key, value] : pod.annotations())
      AddEntry(HookRequest::kPodAnnotationsFieldNumber, key, value, fields);
    for (const auto& [key, value] : pod.labels())
      AddEntry(HookRequest::kPodLabelsFieldNumber, key, value, fields);
  }
  return encoded;
}

void AppendEnvironment(const HookEnvironment& environment, std::string& encoded) {
  if (environment == nullptr) return;
  FieldWriter fields(encoded);
  for (const auto& [name, value] : *environment)
    AddEntry(HookRequest::kContainerEnvsFieldNumber, name, value, fields);
}

api::LinuxContainerResources ToHookResources(const LinuxResources& resources) {
  api::LinuxContainerResources message;
  Overlay(resources, message);
  return message;
}

LinuxResources FromHookResources(const api::LinuxContainerResources& message) {
  LinuxResources resources;
  for (const NumberField& number : kNumberFields) {
    if (number.requested == nullptr) continue;
    resources.*number.requested = NumberAt(message, number.cri_number);
  }
  if (!message.cpuset_cpus().empty()) resources.cpuset_cpus = message.cpuset_cpus();
  if (!message.cpuset_mems().empty()) resources.cpuset_mems = message.cpuset_mems();
  for (const api::HugepageLimit& limit : message.hugepage_limits())
    resources.hugepage_limits[limit.page_size()] = limit.limit();
  return resources;
}

api::PodSandboxHookRequest ToPodRequest(const Pod& pod, uint32_t attempt) {
  api::PodSandboxHookRequest request;
  api::PodSandboxMetadata& meta = *request.mutable_pod_meta();
  meta.set_name(Utf8Repaired(pod.name));
  meta.set_uid(Utf8Repaired(pod.uid.value()));
  meta.set_namespace_(Utf8Repaired(pod.namespace_name));
  meta.set_attempt(attempt);
  request.set_runtime_handler(Utf8Repaired(pod.runtime_handler));
  Fill(pod.labels, *request.mutable_labels());
  Fill(pod.annotations, *request.mutable_annotations());
  request.set_cgroup_parent(Utf8Repaired(pod.cgroup_parent));
  *request.mutable_overhead() = ToHookResources(pod.overhead);
  *request.mutable_resources() = ToHookResources(pod.resources);
  return request;
}

api::ContainerResourceHookRequest ToCreateRequest(const CreateRequest& create,
                                                  const ContainerDetails& details) {
  api::ContainerResourceHookRequest request;
  request.mutable_pod_meta();
  request.mutable_container_meta()->set_name(Utf8Repaired(create.name));
  request.mutable_container_meta()->set_attempt(create.attempt);
  Fill(create.annotations, *request.mutable_container_annotations());
  api::LinuxContainerResources& resources = *request.mutable_container_resources();
  Overlay(create.resources, resources);
  OverlayDetails(details, resources);
  *request.mutable_pod_resources() =
      ToHookResources(create.pod_resources.value_or(LinuxResources()));
  request.set_pod_cgroup_parent(Utf8Repaired(details.cgroup_parent));
  for (const auto& [name, value] : details.environment)
    (*request.mutable_container_envs())[Utf8Repaired(name)] = Utf8Repaired(value);
  return request;
}

void SetUpdate(const LinuxResources& update, const StringMap& annotations,
               const ContainerDetails& details, api::ContainerResourceHookRequest& held) {
  Fill(annotations, *held.mutable_container_annotations());
  Overlay(update, *held.mutable_container_resources());
  OverlayDetails(details, *held.mutable_container_resources());
}

void TakeUpdate(const HookRequest& before, const HookRequest& after, HookRequest& held) {
  TakeDifferent(before.container_resources(), after.container_resources(),
                *held.mutable_container_resources());
  TakeDifferent(before.container_annotations(), after.container_annotations(),
                *held.mutable_container_annotations());
}

std::optional<std::string> WithoutRepeatedEnvironment(std::string_view answer, SentVariables sent) {
  std::string rest;
  const char* start = answer.data();
  WireReader reader(answer);
  while (reader.Next()) {
    const char* const end = reader.rest().data();
    const std::string_view field(start, static_cast<size_t>(end - start));
    start = end;
    if (reader.field() != HookResponse::kContainerEnvsFieldNumber) {
      rest.append(field);
      continue;
    }
    const auto variable = reader.is_bytes() ? ReadEntry(reader.bytes()) : std::nullopt;
    if (!variable) return std::nullopt;
    const auto found = sent.find(variable->first);
    if (found == sent.end() || found->second != variable->second) return std::nullopt;
    // Erased: if a variable is repeated in the answer, it must not count as another one that is
    // missing.
    sent.erase(found);
  }
  if (reader.failed() || !sent.empty()) return std::nullopt;
  return rest;
}

}  // namespace resmgr::hooks
