// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "pkg/base/status.h"
#include "pkg/config/config_node.h"
#include "pkg/model/pod.h"

namespace resmgr {

// A look into documents of which only some keys matter; MapReader (pkg/config) is for those of
// which every key must be known. Errors are InvalidArgument "SOURCE:LINE: path: ...".

// The value of the key; nullptr when it is absent or null, or when `map` is nullptr. Keys match
// exactly, as in Kubernetes.
StatusOr<const ConfigNode*> FindKey(const ConfigNode* map, std::string_view key,
                                    ConfigNode::Kind kind, std::string_view path);

// Refuses keys that look like one of these, misspelt: they would be ignored silently. Keys that
// look like none of them are left to other readers.
Status CheckSpelling(const ConfigNode& map, const std::vector<std::string_view>& known,
                     std::string_view path);

// The text of a key; empty when it is absent.
StatusOr<std::string> FindText(const ConfigNode* map, std::string_view key, std::string_view path);

// A map of texts; empty when it is absent.
StatusOr<StringMap> FindTexts(const ConfigNode* map, std::string_view key, std::string_view path);

}  // namespace resmgr
