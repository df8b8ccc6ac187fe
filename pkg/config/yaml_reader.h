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
// single values, more than one document, nesting deeper than 64, and more than the budget allows.
// Tags are not interpreted, merge keys ("<<") not merged. Takes time in proportion to the text and
// to what the budget gives.
StatusOr<ConfigNode> ParseYaml(std::string_view text, std::string_view source);

// What a text may cost, aliases expanded and what has an anchor counted twice, since it is kept. Of
// several texts that belong together each takes its part.
struct YamlBudget {
  size_t values = 20'000;
  size_t text = size_t{4} << 20;  // bytes
};
StatusOr<ConfigNode> ParseYaml(std::string_view text, std::string_view source, YamlBudget& budget);

// A document for each pod of a large cluster, and what happens to them.
inline constexpr size_t kMaxYamlDocuments = 30'000;
// As many bytes as the list of all pods of a large cluster has.
inline constexpr size_t kMaxYamlDocumentsSize = size_t{32} << 20;

// Reads a text of several documents, at most kMaxYamlDocuments, kMaxYamlDocumentsSize and 1,000,000
// values in all. One that is empty, as between two lines of "---", is kNull. Errors as above.
StatusOr<std::vector<ConfigNode>> ParseYamlDocuments(std::string_view text,
                                                     std::string_view source);

}  // namespace resmgr
