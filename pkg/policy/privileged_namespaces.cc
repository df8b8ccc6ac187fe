// SPDX-License-Identifier: Apache-2.0
#include "pkg/policy/privileged_namespaces.h"

#include <algorithm>

#include <fmt/format.h>

#include "pkg/base/parse.h"
#include "pkg/kube/names.h"

namespace resmgr {

namespace {

bool MatchesAny(const std::vector<std::string>& globs, std::string_view name) {
  return std::ranges::any_of(globs,
                             [name](std::string_view glob) { return MatchesGlob(glob, name); });
}

}  // namespace

bool IsReservedNamespace(const std::vector<std::string>& globs, std::string_view name) {
  return name == kSystemNamespace || MatchesAny(globs, name);
}

void PrivilegedNamespaces::Describe(ConfigSection& section, std::string_view annotations) {
  section.List(
      "PrivilegedNamespaces", globs_,
      fmt::format("globs (`*`, `?`) of the namespaces whose pods may use {}; in others this "
                  "is ignored, with a warning and a note in the reason",
                  annotations));
}

bool PrivilegedNamespaces::Include(const Pod& pod) const {
  return MatchesAny(globs_, pod.namespace_name);
}

std::string PrivilegedNamespaces::WhyIgnored(std::string_view annotation, const Pod& pod,
                                             std::string_view policy) {
  return fmt::format("annotation {} ignored: namespace {} is not in policy.{}.PrivilegedNamespaces",
                     annotation, Printable(pod.namespace_name), policy);
}

}  // namespace resmgr
