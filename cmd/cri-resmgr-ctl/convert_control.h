// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "pkg/base/status.h"
#include "pkg/config/config_node.h"

namespace resmgr {

using KeyNames = std::vector<std::string_view>;

// Limit of a key in notes and paths.
inline constexpr size_t kMostKeyText = 64;

// Whether the key is one of these, in any case.
bool IsOneOf(const KeyNames& keys, std::string_view key);

// InvalidArgument: the node is of another kind. Null passes, since it stands for a key without a
// value.
Status CheckKind(const ConfigNode& node, std::string_view path, ConfigNode::Kind kind);

ConfigNode ItemsNode(std::vector<ConfigNode> items);

// Notes that a key of the map at `path` is left out.
void NoteLeftOut(std::string_view path, std::string_view key, std::vector<std::string>& notes);

// Whether a module of cri-resource-manager, or a key of `control` of nri-plugins, defines classes:
// "cpu", "rdt", "blockio".
bool IsControlKey(std::string_view key);

// Adds what `value` defines to `classes`, the entries of that module, and to `notes` a sentence for
// each key that is left out or means something else. `path` is the place of `value`, for notes and
// errors. InvalidArgument: a value is of the wrong kind.
Status ConvertControl(std::string_view key, const ConfigNode& value, std::string_view path,
                      std::vector<ConfigNode::Entry>& classes, std::vector<std::string>& notes);

}  // namespace resmgr
