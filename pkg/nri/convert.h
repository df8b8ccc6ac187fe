// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pkg/api/nri.pb.h"
#include "pkg/model/adjustment.h"
#include "pkg/model/pod.h"
#include "pkg/model/request.h"
#include "pkg/model/resource_fields.h"
#include "pkg/model/resources.h"
#include "pkg/nri/protocol.h"
#include "pkg/resmgr/runtime_client.h"

namespace resmgr::nri {

namespace api = ::nri::pkg::api::v1alpha1;

// Converts between NRI's messages and model values. In NRI a set value has a message of its own,
// which may hold 0; in the CRI, 0 means unset. Zeros of a runtime, which copies a CRI request,
// therefore stay unset here.

LinuxResources ToResources(const api::LinuxResources& resources);
// See Request::files.
std::vector<std::string> FilesOf(const api::LinuxResources& resources);

// Takes the QoS class from the cgroup parent; missing fields from labels.
Pod ToPod(const api::PodSandbox& pod);

// Converts an existing container. UNKNOWN counts as created: containerd uses it while it creates
// one.
RuntimeContainer ToRuntimeContainer(const api::Container& container);

// The request of a container that is to be created; without hints.
CreateRequest ToCreateRequest(const api::Container& container);

// OCI's options for a mount.
std::string_view PropagationOption(const Mount& mount);
std::string_view AccessOption(const Mount& mount);

// Adds the hook at its hook point.
void AddHook(const OciHook& hook, api::Hooks& hooks);

// Adds the resource manager's decision as a change of a container.
void AddTo(const ResourceValues& values, api::LinuxResources& resources);

// Whether the answer to an event has a place for the field. NRI cannot change labels and the cgroup
// parent of a pod; devices need numbers that only the runtime's /dev knows; seccomp filters are
// given as objects, not as files.
bool NriHas(Operation operation, Field field);

// Adds all changes that stages make at a creation, for a host with this version. A class of RDT is
// the name of a group of resctrl; hosts before kNamesRdtGroups look it up in the runtime's own
// configuration.
void AddTo(const Adjustment& adjustment, ApiVersion host, api::ContainerAdjustment& out);

// A number of pkg/model/resource_fields.h in NRI's LinuxResources, with the same unit. The OOM
// score is not one of them: it is a field of the container.
struct NriNumber {
  using Resources = ::nri::pkg::api::v1alpha1::LinuxResources;

  Field field;
  ::nri::pkg::api::v1alpha1::Field nri_field;
  std::string_view text;
  bool is_unsigned;  // in NRI's message
  // nullopt: not set. An unsigned number beyond int64_t comes out negative.
  std::optional<int64_t> (*get)(const Resources& resources);
  void (*set)(Resources& resources, int64_t number);

  constexpr const NumberField& row() const { return *NumberFieldOf(field); }
};

template <typename Number>
std::optional<int64_t> SetNumber(bool is_set, const Number& number) {
  return is_set ? std::optional(static_cast<int64_t>(number.value())) : std::nullopt;
}

inline constexpr std::array<NriNumber, 5> kNriNumbers{{
    {Field::kCpuShares, ::nri::pkg::api::v1alpha1::FIELD_CPUSHARES, "CPU shares", true,
     [](const NriNumber::Resources& resources) {
       return SetNumber(resources.cpu().has_shares(), resources.cpu().shares());
     },
     [](NriNumber::Resources& resources, int64_t number) {
       resources.mutable_cpu()->mutable_shares()->set_value(static_cast<uint64_t>(number));
     }},
    {Field::kCpuQuota, ::nri::pkg::api::v1alpha1::FIELD_CPUQUOTA, "CPU quota", false,
     [](const NriNumber::Resources& resources) {
       return SetNumber(resources.cpu().has_quota(), resources.cpu().quota());
     },
     [](NriNumber::Resources& resources, int64_t number) {
       resources.mutable_cpu()->mutable_quota()->set_value(number);
     }},
    {Field::kCpuPeriod, ::nri::pkg::api::v1alpha1::FIELD_CPUPERIOD, "CPU period", true,
     [](const NriNumber::Resources& resources) {
       return SetNumber(resources.cpu().has_period(), resources.cpu().period());
     },
     [](NriNumber::Resources& resources, int64_t number) {
       resources.mutable_cpu()->mutable_period()->set_value(static_cast<uint64_t>(number));
     }},
    {Field::kMemoryLimit, ::nri::pkg::api::v1alpha1::FIELD_MEM_LIMIT, "memory limit", false,
     [](const NriNumber::Resources& resources) {
       return SetNumber(resources.memory().has_limit(), resources.memory().limit());
     },
     [](NriNumber::Resources& resources, int64_t number) {
       resources.mutable_memory()->mutable_limit()->set_value(number);
     }},
    {Field::kMemorySwapLimit, ::nri::pkg::api::v1alpha1::FIELD_MEM_SWAP_LIMIT, "swap limit", false,
     [](const NriNumber::Resources& resources) {
       return SetNumber(resources.memory().has_swap(), resources.memory().swap());
     },
     [](NriNumber::Resources& resources, int64_t number) {
       resources.mutable_memory()->mutable_swap()->set_value(number);
     }},
}};

}  // namespace resmgr::nri
