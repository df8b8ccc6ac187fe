// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <nlohmann/json.hpp>

namespace resmgr::dump {

// An object or an array as block-style YAML that ends in a newline: keys sorted, sequences not
// indented below their key, text of several lines as a literal block, quotes only where the text
// would be read as something else. An empty object is "{}", an empty array "[]". Never folds a long
// line, so that it can be searched.
std::string ToYaml(const nlohmann::json& tree);

}  // namespace resmgr::dump
