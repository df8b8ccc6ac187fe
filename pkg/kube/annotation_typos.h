// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "pkg/base/string_map.h"

namespace resmgr {

// Annotations in the domains of policies (annotations.h) that nothing reads, since their key or the
// part behind the domain is probably mistyped: one sentence each, which names the annotation. A key
// that is not like any known one may belong to another program and is left out.
std::vector<std::string> MistypedAnnotations(const StringMap& annotations);

// The same for annotations of single containers, by the names of all containers that the pod has
// now; more may be created later, so only names like one of these are told.
std::vector<std::string> MistypedContainers(const StringMap& annotations,
                                            const std::vector<std::string_view>& containers);

// All keys that a pod's annotations may have in these domains (docs/annotations.md).
const std::vector<std::string_view>& AnnotationKeys();

}  // namespace resmgr
