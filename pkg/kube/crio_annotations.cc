// SPDX-License-Identifier: Apache-2.0
#include "pkg/kube/crio_annotations.h"

#include <fmt/format.h>

namespace resmgr {

std::optional<StringMap::value_type> FindCrioAnnotation(const StringMap& annotations,
                                                        std::string_view key,
                                                        std::string_view container) {
  const auto own = annotations.find(fmt::format("{}/{}", key, container));
  if (own != annotations.end()) return *own;
  const auto pods = annotations.find(key);
  if (pods == annotations.end()) return std::nullopt;
  return *pods;
}

bool WantsSharedCpus(const StringMap& annotations, std::string_view container) {
  if (annotations.empty()) return false;
  const auto found = FindCrioAnnotation(annotations, kCpuSharedAnnotation, container);
  return found && found->second == "enable";
}

}  // namespace resmgr
