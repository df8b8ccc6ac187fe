// SPDX-License-Identifier: Apache-2.0
#include "pkg/policy/letting_go.h"

#include <optional>
#include <string>

namespace resmgr {
namespace {

template <typename Set>
Set RequestedOr(const std::optional<std::string>& list, const Set& all) {
  const StatusOr<Set> wanted = Set::Parse(list.value_or(""));
  return wanted.ok() && !wanted->empty() && wanted->IsSubsetOf(all) ? *wanted : all;
}

}  // namespace

CpuSet CpusWithoutPolicy(const Machine& machine, const LinuxResources& requested) {
  return RequestedOr<CpuSet>(requested.cpuset_cpus, machine.allowed());
}

NodeSet MemsWithoutPolicy(const Machine& machine, const LinuxResources& requested) {
  return RequestedOr<NodeSet>(requested.cpuset_mems, machine.allowed_nodes());
}

}  // namespace resmgr
