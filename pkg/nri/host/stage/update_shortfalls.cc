// SPDX-License-Identifier: Apache-2.0
#include "pkg/nri/host/stage/update_shortfalls.h"

#include <utility>

#include <fmt/format.h>

namespace resmgr::nri {
namespace {

void ClearMemory(api::Field field, api::LinuxMemory& memory) {
  switch (field) {
    case api::FIELD_MEM_LIMIT:
      return memory.clear_limit();
    case api::FIELD_MEM_SWAP_LIMIT:
      return memory.clear_swap();
    case api::FIELD_MEM_RESERVATION:
      return memory.clear_reservation();
    case api::FIELD_MEM_KERNEL_LIMIT:
      return memory.clear_kernel();
    case api::FIELD_MEM_TCPLIMIT:
      return memory.clear_kernel_tcp();
    case api::FIELD_MEM_SWAPPINESS:
      return memory.clear_swappiness();
    case api::FIELD_MEM_DISABLE_OOM_KILLER:
      return memory.clear_disable_oom_killer();
    case api::FIELD_MEM_USE_HIERARCHY:
      return memory.clear_use_hierarchy();
    default:
      return;
  }
}

// Clears any field that ShortfallsOf can name.
void Clear(api::Field field, api::LinuxResources& resources) {
  switch (field) {
    case api::FIELD_CPUREALTIME_RUNTIME:
      return resources.mutable_cpu()->clear_realtime_runtime();
    case api::FIELD_CPUREALTIME_PERIOD:
      return resources.mutable_cpu()->clear_realtime_period();
    case api::FIELD_PIDS_LIMIT:
      return resources.clear_pids();
    case api::FIELD_BLOCKIO_CLASS:
      return resources.clear_blockio_class();
    case api::FIELD_RDT_CLASS:
      return resources.clear_rdt_class();
    case api::FIELD_NONE:
      return resources.clear_devices();
    default:
      return ClearMemory(field, *resources.mutable_memory());
  }
}

}  // namespace

StatusOr<std::vector<std::string>> LeaveOutShortfalls(const RuntimeTraits& traits,
                                                      const UnsupportedPolicy& policy,
                                                      api::LinuxResources& resources) {
  const std::vector<Shortfall> shortfalls = ShortfallsOf(resources, traits, /*update=*/true);
  std::vector<std::string> left_out;
  for (const Shortfall& shortfall : shortfalls) {
    std::string text =
        fmt::format("an NRI plugin wants to set {}: {}", Shown(shortfall), shortfall.why);
    if (policy.Of(shortfall) == FailurePolicy::kFail) {
      return MakeStatus(StatusCode::kFailedPrecondition, std::move(text));
    }
    left_out.push_back(std::move(text));
  }
  for (const Shortfall& shortfall : shortfalls)
    Clear(shortfall.field, resources);
  return left_out;
}

}  // namespace resmgr::nri
