// SPDX-License-Identifier: Apache-2.0
#include "pkg/policy/pinning.h"

#include <optional>
#include <string>

#include "pkg/base/parse.h"

namespace resmgr {
namespace {

template <typename Set>
Set RequestedOr(const std::optional<std::string>& list, const Set& all) {
  const StatusOr<Set> wanted = Set::Parse(list.value_or(""));
  return wanted.ok() && !wanted->empty() && wanted->IsSubsetOf(all) ? *wanted : all;
}

}  // namespace

PinningRule::PinningRule(const RuntimesConfig* runtimes) {
  if (runtimes == nullptr) return;
  for (const auto& [handler, options] : runtimes->classes) {
    if (options.pinning == Pinning::kContainer) continue;
    unbound_.emplace(handler, fmt::format("handler {} has Pinning {}: its containers get no cpuset",
                                          handler.empty() ? "\"\"" : Printable(handler),
                                          ToString(options.pinning)));
  }
}

std::string_view PinningRule::WhyUnbound(const Pod& pod) const {
  if (unbound_.empty()) return "";
  const auto found = unbound_.find(pod.runtime_handler);
  return found == unbound_.end() ? std::string_view() : found->second;
}

CpuSet CpusWithoutPolicy(const Machine& machine, const LinuxResources& requested) {
  return RequestedOr<CpuSet>(requested.cpuset_cpus, machine.allowed());
}

NodeSet MemsWithoutPolicy(const Machine& machine, const LinuxResources& requested) {
  return RequestedOr<NodeSet>(requested.cpuset_mems, machine.allowed_nodes());
}

}  // namespace resmgr
