// SPDX-License-Identifier: Apache-2.0
#include "pkg/kube/crio_annotations.h"

namespace resmgr {

std::optional<StringMap::value_type> FindCrioAnnotation(const StringMap& annotations,
                                                        std::string_view key,
                                                        std::string_view container) {
  std::optional<StringMap::value_type> of_pod;
  // Keys that begin alike are neighbours.
  for (auto it = annotations.lower_bound(key); it != annotations.end(); ++it) {
    std::string_view rest = it->first;
    if (!rest.starts_with(key)) break;
    rest.remove_prefix(key.size());
    if (rest.empty()) of_pod = *it;
    if (rest.starts_with('/') && rest.substr(1) == container) return *it;
  }
  return of_pod;
}

bool WantsSharedCpus(const StringMap& annotations, std::string_view container) {
  if (annotations.empty()) return false;
  const auto found = FindCrioAnnotation(annotations, kCpuSharedAnnotation, container);
  return found && found->second == "enable";
}

}  // namespace resmgr
