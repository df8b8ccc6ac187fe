// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pkg/base/parse.h"
#include "pkg/base/status.h"
#include "pkg/base/suggest.h"

namespace resmgr {

// `"x" is not one of a, b; did you mean a?`: the end of a message about a value that has to be one
// of these words. An empty word is not listed.
inline std::string NotOneOf(std::string_view given, std::vector<std::string_view> words) {
  std::erase(words, std::string_view());
  return fmt::format("\"{}\" is not one of {}{}", Printable(given, 64), fmt::join(words, ", "),
                     DidYouMean(given, words));
}

// The same for the words of a table.
template <typename Value, size_t Count>
std::string NotOneOf(std::string_view given,
                     const std::array<std::pair<std::string_view, Value>, Count>& table) {
  std::vector<std::string_view> words;
  words.reserve(Count);
  for (const auto& [word, value] : table)
    words.push_back(word);
  return NotOneOf(given, std::move(words));
}

// Whether a class can have this name. InvalidArgument: it does not have 1 to 63 printable ASCII
// characters.
Status CheckClassName(std::string_view name);

}  // namespace resmgr
