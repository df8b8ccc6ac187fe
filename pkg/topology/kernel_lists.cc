// SPDX-License-Identifier: Apache-2.0
#include "pkg/topology/kernel_lists.h"

#include <algorithm>
#include <cstdlib>
#include <map>

#include <fmt/format.h>

#include "pkg/base/parse.h"
#include "pkg/sys/files.h"

namespace resmgr {
namespace {

std::string PathOf(std::string_view device) {
  const char* const root = std::getenv("HWLOC_FSROOT");
  return fmt::format("{}/sys/devices/{}", root == nullptr ? "" : root, device);
}

CpuSet ListedCpus(std::string_view device) {
  return ReadKernelCpus(PathOf(device)).value_or(CpuSet());
}

}  // namespace

StatusOr<std::string> ReadKernelText(const std::string& path) {
  // More than a list of every other CPU up to CpuSet::kMaxId.
  constexpr size_t kMost = size_t{64} << 10;
  RESMGR_ASSIGN_OR_RETURN(const std::string text, ReadFile(path, kMost));
  return std::string(Trim(text));
}

StatusOr<CpuSet> ReadKernelCpus(const std::string& path) {
  RESMGR_ASSIGN_OR_RETURN(const std::string text, ReadKernelText(path));
  StatusOr<CpuSet> cpus = CpuSet::Parse(text);
  if (!cpus.ok()) return Annotate(cpus.status(), path);
  return cpus;
}

std::string IsolatedByKernel() {
  return ReadKernelText(PathOf("system/cpu/isolated")).value_or("");
}

void ApplyLocalNodes(Machine::Parts& parts) {
  std::map<int, CpuSet> local;
  for (const NumaNode& node : parts.nodes)
    local[node.id] = ListedCpus(fmt::format("system/node/node{}/cpulist", node.id));
  for (Cpu& cpu : parts.cpus) {
    const auto told = local.find(cpu.numa);
    if (told == local.end() || told->second.Contains(cpu.id)) continue;
    const auto own = std::ranges::find_if(
        local, [&cpu](const auto& node) { return node.second.Contains(cpu.id); });
    if (own != local.end()) cpu.numa = own->first;
  }
}

// The kernel has a performance monitoring unit for each type of core.
void ApplyCoreTypes(std::vector<Cpu>& cpus) {
  const CpuSet performance = ListedCpus("cpu_core/cpus");
  const CpuSet efficient = ListedCpus("cpu_atom/cpus") | ListedCpus("cpu_lowpower/cpus");
  if (performance.empty() || efficient.empty()) return;
  for (Cpu& cpu : cpus) {
    if (!cpu.online) continue;
    if (performance.Contains(cpu.id)) cpu.kind = CoreKind::kPerformance;
    if (efficient.Contains(cpu.id)) cpu.kind = CoreKind::kEfficient;
  }
}

}  // namespace resmgr
