// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

#include "pkg/config/yaml_reader.h"
#include "pkg/sys/files.h"

namespace resmgr::test {

// The documents of a file of sample-configs; a failure of the test where it is not YAML.
inline std::vector<ConfigNode> ReadDocuments(const std::string& path) {
  const auto text = ReadFile(path, size_t{1} << 20);
  EXPECT_TRUE(text.ok()) << Describe(text.status());
  auto documents = ParseYamlDocuments(text.value_or(""), path);
  EXPECT_TRUE(documents.ok()) << Describe(documents.status());
  return documents.value_or(std::vector<ConfigNode>{});
}

// The value at "a/b/0/c"; an empty one if it is missing.
inline ConfigNode At(ConfigNode node, std::string_view path) {
  while (!path.empty()) {
    const size_t end = std::min(path.find('/'), path.size());
    const std::string key(path.substr(0, end));
    path.remove_prefix(std::min(end + 1, path.size()));
    ConfigNode next;
    if (node.kind == ConfigNode::Kind::kList) {
      const size_t index = std::stoul(key);
      if (index < node.items.size()) next = node.items[index];
    }
    for (const ConfigNode::Entry& entry : node.entries) {
      if (entry.key == key) next = entry.value;
    }
    node = std::move(next);
  }
  return node;
}

inline std::vector<std::string> Texts(const ConfigNode& list) {
  std::vector<std::string> texts;
  for (const ConfigNode& item : list.items)
    texts.push_back(item.text);
  return texts;
}

// The first document of this kind; an empty one if there is none.
inline ConfigNode OfKind(const std::vector<ConfigNode>& documents, std::string_view kind) {
  const auto found = std::ranges::find_if(
      documents, [kind](const ConfigNode& node) { return At(node, "kind").text == kind; });
  return found == documents.end() ? ConfigNode() : *found;
}

}  // namespace resmgr::test
