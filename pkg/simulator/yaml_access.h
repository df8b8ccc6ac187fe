// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "pkg/base/status.h"
#include "pkg/config/config_node.h"
#include "pkg/model/pod.h"

namespace resmgr {

// Access to documents of which only some keys matter; ConfigSection (pkg/config) is for documents
// whose keys must all be known. Errors are kInvalidArgument "SOURCE:LINE: path: ...".

// The value of the key; nullptr if it is absent or null, or if `map` is nullptr. Keys match
// exactly, as in Kubernetes.
StatusOr<const ConfigNode*> FindKey(const ConfigNode* map, std::string_view key,
                                    ConfigNode::Kind kind, std::string_view path);

// Refuses keys that resemble a known one: a misspelt key would be ignored silently. Other unknown
// keys pass, since other programs may read them.
Status CheckSpelling(const ConfigNode& map, const std::vector<std::string_view>& known,
                     std::string_view path);

// The text of a key; empty if absent.
StatusOr<std::string> FindText(const ConfigNode* map, std::string_view key, std::string_view path);

// A map of texts; empty if absent.
StatusOr<StringMap> FindTexts(const ConfigNode* map, std::string_view key, std::string_view path);

}  // namespace resmgr
