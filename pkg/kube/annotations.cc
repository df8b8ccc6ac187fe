// SPDX-License-Identifier: Apache-2.0
#include "pkg/kube/annotations.h"

#include <array>

#include <fmt/format.h>

namespace resmgr {

namespace {

constexpr std::array<std::string_view, 2> kDomains = {"cri-resource-manager.intel.com",
                                                      "resource-policy.nri.io"};

}  // namespace

std::optional<ScopedAnnotation> FindAnnotation(const StringMap& annotations, std::string_view key,
                                               std::string_view container_name) {
  const std::array<std::string, 3> scopes = {fmt::format("/container.{}", container_name), "/pod",
                                             ""};
  for (const std::string& scope : scopes) {
    for (const std::string_view domain : kDomains) {
      const auto found = annotations.find(fmt::format("{}.{}{}", key, domain, scope));
      if (found != annotations.end()) return ScopedAnnotation{found->first, found->second};
    }
  }
  return std::nullopt;
}

}  // namespace resmgr
