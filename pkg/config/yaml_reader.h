// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "pkg/base/status.h"
#include "pkg/config/config_node.h"

namespace resmgr {

// Reads one YAML document. `source` names it in messages. The root of an empty text is kNull.
// InvalidArgument "SOURCE:LINE: ..." for anything that is not valid YAML, and for what would be
// harmful or ambiguous: texts that CheckConfigText refuses, a key twice in a map, keys that are not
// single values, more than one document, nesting deeper than 64, and more than 20,000 values or 4
// MiB of text after aliases are expanded. Tags are not interpreted, merge keys ("<<") not merged.
StatusOr<ConfigNode> ParseYaml(std::string_view text, std::string_view source);

inline constexpr size_t kMaxYamlDocuments = 1'000;

// Reads a text of several documents, at most kMaxYamlDocuments and 200,000 values in all. One that
// is empty, as between two lines of "---", is kNull. Errors as above.
StatusOr<std::vector<ConfigNode>> ParseYamlDocuments(std::string_view text,
                                                     std::string_view source);

}  // namespace resmgr
