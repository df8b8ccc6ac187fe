// SPDX-License-Identifier: Apache-2.0
#include "pkg/kube/annotations.h"

#include <algorithm>
#include <array>

namespace resmgr {

namespace {

constexpr std::array<std::string_view, 2> kDomains = {"cri-resource-manager.intel.com",
                                                      "resource-policy.nri.io"};
constexpr std::string_view kContainerScope = "/container.";
constexpr std::string_view kPodScope = "/pod";
constexpr int kUnscoped = 2;

// The rank of a scope, 0 for the narrowest; nullopt if it does not apply to the container.
std::optional<int> ScopeRank(std::string_view scope, std::string_view container_name) {
  if (scope.empty()) return kUnscoped;
  if (scope == kPodScope) return 1;
  if (!scope.starts_with(kContainerScope)) return std::nullopt;
  scope.remove_prefix(kContainerScope.size());
  return scope == container_name ? std::optional(0) : std::nullopt;
}

// The rank of a key; smaller ones win: scopes first, then domains. `rest` follows "KEY.".
std::optional<int> RankOf(std::string_view rest, std::string_view container_name) {
  for (size_t domain = 0; domain < kDomains.size(); ++domain) {
    if (!rest.starts_with(kDomains[domain])) continue;
    rest.remove_prefix(kDomains[domain].size());
    const std::optional<int> scope = ScopeRank(rest, container_name);
    if (!scope) return std::nullopt;
    return *scope * static_cast<int>(kDomains.size()) + static_cast<int>(domain);
  }
  return std::nullopt;
}

std::optional<ScopedAnnotation> FindOldForm(const StringMap& annotations, std::string_view key) {
  for (auto it = annotations.lower_bound(kDomains.front()); it != annotations.end(); ++it) {
    std::string_view rest = it->first;
    if (!rest.starts_with(kDomains.front())) break;
    rest.remove_prefix(kDomains.front().size());
    if (!rest.starts_with('/') || rest.substr(1) != key) continue;
    return ScopedAnnotation{it->first, it->second, /*old_form=*/true};
  }
  return std::nullopt;
}

}  // namespace

// Looks only at the keys that begin with `key`, which are neighbours: policies ask on every
// decision.
std::optional<ScopedAnnotation> FindAnnotation(const StringMap& annotations, std::string_view key,
                                               std::string_view container_name) {
  std::optional<ScopedAnnotation> best;
  int best_rank = 0;
  for (auto it = annotations.lower_bound(key); it != annotations.end(); ++it) {
    std::string_view rest = it->first;
    if (!rest.starts_with(key)) break;
    rest.remove_prefix(key.size());
    if (!rest.starts_with('.')) continue;
    const std::optional<int> rank = RankOf(rest.substr(1), container_name);
    if (!rank || (best && best_rank <= *rank)) continue;
    best = ScopedAnnotation{it->first, it->second};
    best_rank = *rank;
  }
  return best ? best : FindOldForm(annotations, key);
}

bool IsForPolicies(std::string_view key) {
  return std::ranges::any_of(kDomains, [key](std::string_view domain) {
    return key.find(domain) != std::string_view::npos;
  });
}

}  // namespace resmgr
