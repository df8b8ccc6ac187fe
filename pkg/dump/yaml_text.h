// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <nlohmann/json.hpp>

namespace resmgr::dump {

// An object or an array as block-style YAML that ends in a newline: keys sorted, sequences not
// indented below their key, text of several lines as a literal block, quotes only if plain text
// would have another meaning. An empty object is "{}", an empty array "[]". Long lines are never
// folded, so that they can be searched.
std::string ToYaml(const nlohmann::json& tree);

}  // namespace resmgr::dump
