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

// Limit of a file: longer than a list of every other CPU up to CpuSet::kMaxId.
constexpr size_t kMostOfAFile = size_t{64} * 1024;

std::string ReadText(const std::string& path) {
  const char* const root = std::getenv("HWLOC_FSROOT");
  const StatusOr<std::string> text =
      ReadFile(fmt::format("{}/sys/devices/{}", root == nullptr ? "" : root, path), kMostOfAFile);
  return text.ok() ? std::string(Trim(*text)) : "";
}

CpuSet ListedCpus(const std::string& path) {
  return CpuSet::Parse(ReadText(path)).value_or(CpuSet());
}

}  // namespace

std::string IsolatedByKernel() {
  return ReadText("system/cpu/isolated");
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
