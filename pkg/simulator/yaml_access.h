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

// The value at a path of keys: "status.phase".
StatusOr<const ConfigNode*> FindAt(const ConfigNode& document, std::string_view path,
                                   ConfigNode::Kind kind);

// Refuses keys that resemble a known one: a misspelt key would be ignored silently. Other unknown
// keys pass, since other programs may read them.
Status CheckSpelling(const ConfigNode& map, const std::vector<std::string_view>& known,
                     std::string_view path);

// The text of a key; empty if absent.
StatusOr<std::string> FindText(const ConfigNode* map, std::string_view key, std::string_view path);

// The text at a path of keys; empty if absent.
StatusOr<std::string> FindTextAt(const ConfigNode& document, std::string_view path);

// The names of an object in its `metadata`.
struct ObjectName {
  std::string namespace_name{};  // "default" if it is absent
  std::string name{};
  std::string uid{};
};

// `known` are the keys of `metadata` that matter; `what` is "a pod", for the message about a
// missing name.
StatusOr<ObjectName> ReadObjectName(const ConfigNode& object, std::string_view what,
                                    const std::vector<std::string_view>& known);

// A map of texts; empty if absent.
StatusOr<StringMap> FindTexts(const ConfigNode* map, std::string_view key, std::string_view path);

}  // namespace resmgr
