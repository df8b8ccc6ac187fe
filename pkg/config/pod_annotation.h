// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

#include "pkg/base/string_map.h"
#include "pkg/config/config_node.h"

namespace resmgr {

// The longest text of YAML that is read: it happens on the event loop, and users who may create
// pods write it.
inline constexpr size_t kMaxAnnotationText = size_t{16} << 10;

// What a pod's annotations say under `key` ("prefer-isolated-cpus") about one of its containers, as
// YAML. Which annotation it is, says FindAnnotation (pkg/kube/annotations.h); where it is one of
// the old form and its value a map, that is one from containers to values. kNull when nothing is
// said about this container; InvalidArgument when it cannot be read, or is longer than
// kMaxAnnotationText.
StatusOr<ConfigNode> ReadAnnotation(const StringMap& annotations, std::string_view key,
                                    std::string_view container_name);

// The same where the value says yes or no (ParseBool); nullopt for any other value, too.
std::optional<bool> ReadBoolAnnotation(const StringMap& annotations, std::string_view key,
                                       std::string_view container_name);

// The value of a map's entry; nullptr when there is none, or it is no map.
const ConfigNode* FindMember(const ConfigNode& node, std::string_view key);

}  // namespace resmgr
