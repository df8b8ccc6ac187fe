// SPDX-License-Identifier: Apache-2.0
#include "pkg/nri/host/view/resource_view.h"

#include "pkg/base/utf8.h"
#include "pkg/nri/nri_numbers.h"

namespace resmgr::nri {

void CopyStrings(const StringMap& from, NriStrings& to) {
  for (const auto& [name, value] : from)
    to[Utf8Repaired(name)] = Utf8Repaired(value);
}

api::LinuxResources ToNriResources(const LinuxResources& resources,
                                   const std::optional<int64_t>& memory_swap_limit,
                                   const StringMap& unified) {
  api::LinuxResources out;
  api::LinuxCPU& cpu = *out.mutable_cpu();
  if (resources.cpuset_cpus) cpu.set_cpus(Utf8Repaired(*resources.cpuset_cpus));
  if (resources.cpuset_mems) cpu.set_mems(Utf8Repaired(*resources.cpuset_mems));
  api::LinuxMemory& memory = *out.mutable_memory();
  for (const NriNumber& number : kNriNumbers) {
    const auto requested = number.row().requested;
    if (requested != nullptr && resources.*requested) number.set(out, *(resources.*requested));
  }
  if (memory_swap_limit.value_or(0) != 0) memory.mutable_swap()->set_value(*memory_swap_limit);
  for (const auto& [size, limit] : resources.hugepage_limits) {
    api::HugepageLimit& added = *out.add_hugepage_limits();
    added.set_page_size(Utf8Repaired(size));
    added.set_limit(limit);
  }
  CopyStrings(unified, *out.mutable_unified());
  return out;
}

}  // namespace resmgr::nri
