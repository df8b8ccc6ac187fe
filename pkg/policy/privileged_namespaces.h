// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "pkg/config/config_section.h"
#include "pkg/model/pod.h"

namespace resmgr {

inline constexpr std::string_view kSystemNamespace = "kube-system";

// Whether pods of the namespace belong on reserved CPUs: `kube-system`, and those that `globs`
// name.
bool IsReservedNamespace(const std::vector<std::string>& globs, std::string_view name);

// The namespaces whose pods may ask by annotation to run on exclusive CPUs of other containers, or
// on the reserved CPUs. Other containers are protected from this: all users that create pods can
// write annotations, but only administrators put pods into these namespaces. A value type.
class PrivilegedNamespaces {
 public:
  // The key PrivilegedNamespaces of a policy's section: globs that replace the default.
  // `annotations` are those that only these namespaces may use, for the help.
  void Describe(ConfigSection& section, std::string_view annotations);

  bool Include(const Pod& pod) const;

  // The sentence about such an annotation of a pod that is not in one of them; `policy` is the
  // section's name.
  static std::string WhyIgnored(std::string_view annotation, const Pod& pod,
                                std::string_view policy);

 private:
  std::vector<std::string> globs_ = {std::string(kSystemNamespace)};
};

}  // namespace resmgr
