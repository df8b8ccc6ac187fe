// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "pkg/base/status.h"
#include "pkg/config/config_node.h"

namespace resmgr {

// Reads one YAML document. `source` names it in messages. The root of an empty text is kNull.
// kInvalidArgument "SOURCE:LINE: ..." for invalid YAML, and for harmful or ambiguous texts: those
// that CheckConfigText refuses, duplicate keys, keys that are not single values, merge keys ("<<"),
// more than one document, nesting deeper than 64, and more than the budget allows. Tags are not
// interpreted. Takes time in proportion to the text and to the budget.
StatusOr<ConfigNode> ParseYaml(std::string_view text, std::string_view source);

// Limits of a text, aliases expanded and anchored values counted twice, since they are kept.
// Several texts that belong together share one budget.
struct YamlBudget {
  size_t values = 20'000;
  size_t text = size_t{4} << 20;  // bytes
};
StatusOr<ConfigNode> ParseYaml(std::string_view text, std::string_view source, YamlBudget& budget);

// A document for each pod of a large cluster, and for events of the pods.
inline constexpr size_t kMaxYamlDocuments = 30'000;
// Bytes of the list of all pods of a large cluster.
inline constexpr size_t kMaxYamlDocumentsSize = size_t{32} << 20;

// Reads a text of several documents, at most kMaxYamlDocuments, kMaxYamlDocumentsSize bytes and
// 1,000,000 values in total. An empty one, between two lines of "---", is kNull. Errors as above.
StatusOr<std::vector<ConfigNode>> ParseYamlDocuments(std::string_view text,
                                                     std::string_view source);

inline constexpr size_t kMaxConfigSize = size_t{1} << 20;

// Checks that the contents are text, and removes a byte order mark. kInvalidArgument "SOURCE:LINE:
// ..." if it has more than `max_size` bytes or control characters, some of which a library would
// take for the end.
StatusOr<std::string_view> CheckConfigText(std::string_view text, std::string_view source,
                                           size_t max_size = kMaxConfigSize);

}  // namespace resmgr
