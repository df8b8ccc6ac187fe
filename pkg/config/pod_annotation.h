// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pkg/base/string_map.h"
#include "pkg/config/config_node.h"

namespace resmgr {

// Bytes of the longest YAML text that is parsed: this happens on the event loop, and users who may
// create pods choose the text.
inline constexpr size_t kMaxAnnotationText = size_t{16} << 10;

// The value of a pod's annotation `key` ("prefer-isolated-cpus") for one of its containers, as
// YAML. FindAnnotation (pkg/kube/annotations.h) chooses the annotation; the value of one of the old
// form may be a map from containers to values. kNull if there is no value for this container;
// kInvalidArgument if it is malformed, or longer than kMaxAnnotationText.
StatusOr<ConfigNode> ReadAnnotation(const StringMap& annotations, std::string_view key,
                                    std::string_view container_name);

// The same for a boolean value (BoolOfAnnotation); nullopt also for any other value, which
// MistypedAnnotations reports.
std::optional<bool> ReadBoolAnnotation(const StringMap& annotations, std::string_view key,
                                       std::string_view container_name);

// As MistypedAnnotations (pkg/kube/annotations.h) and MistypedContainers, for the values and names
// in maps from containers to values. `containers` are those that the pod has now; if they are not
// known, only values are looked at.
std::vector<std::string> MistypedInMaps(const StringMap& annotations,
                                        const std::vector<std::string_view>& containers = {});

}  // namespace resmgr
