// SPDX-License-Identifier: Apache-2.0
#include "pkg/topology/online_cpus.h"

#include <cstdlib>

#include "pkg/base/parse.h"
#include "pkg/sys/files.h"
#include "pkg/topology/fingerprint_hash.h"

namespace resmgr {
namespace {

// More than a list of every other CPU up to CpuSet::kMaxId.
constexpr size_t kLongestList = size_t{64} * 1024;

}  // namespace

StatusOr<CpuSet> ReadOnlineCpus(const std::string& root) {
  const char* const other = std::getenv("HWLOC_FSROOT");
  const std::string path = (root.empty() && other != nullptr ? std::string(other) : root) +
                           "/sys/devices/system/cpu/online";
  RESMGR_ASSIGN_OR_RETURN(const std::string text, ReadFile(path, kLongestList));
  StatusOr<CpuSet> online = CpuSet::Parse(Trim(text));
  if (!online.ok()) return Annotate(online.status(), path);
  if (online->empty()) return Unavailable("{} names no CPU", path);
  return online;
}

CpuSet OfflineCpus(const Machine& machine) {
  CpuSet offline;
  for (const Cpu& cpu : machine.cpus()) {
    if (!cpu.online) offline.Add(cpu.id);
  }
  return offline;
}

std::string HardwareFingerprint(const Machine& machine) {
  FingerprintHash hash;
  for (const Cpu& cpu : machine.cpus())
    hash.Add(cpu.id);
  for (const NumaNode& node : machine.nodes()) {
    hash.Add(node.id);
    hash.Add(static_cast<int>(node.type));
    for (const int distance : node.distances)
      hash.Add(distance);
  }
  return hash.Text();
}

}  // namespace resmgr
