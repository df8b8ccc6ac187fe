// SPDX-License-Identifier: Apache-2.0
#include "pkg/policy/pinning.h"

#include "pkg/base/parse.h"

namespace resmgr {

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

}  // namespace resmgr
