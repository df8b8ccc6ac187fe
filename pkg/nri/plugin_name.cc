// SPDX-License-Identifier: Apache-2.0
#include "pkg/nri/plugin_name.h"

#include <algorithm>
#include <cstddef>

#include "pkg/base/parse.h"

namespace resmgr::nri {
namespace {

constexpr size_t kLongestName = 64;

bool IsDigit(char c) {
  return c >= '0' && c <= '9';
}

bool IsNameCharacter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || IsDigit(c) ||
         std::string_view("_.+-").find(c) != std::string_view::npos;
}

}  // namespace

Status CheckPluginName(std::string_view index, std::string_view name) {
  if (name.empty() || name.size() > kLongestName || !std::ranges::all_of(name, IsNameCharacter)) {
    return InvalidArgument("NRI plugin name \"{}\" is not of letters, digits and _.+-",
                           Printable(name));
  }
  if (index.size() != 2 || !std::ranges::all_of(index, IsDigit)) {
    return InvalidArgument("NRI plugin index \"{}\" is not two digits", Printable(index));
  }
  return OkStatus();
}

std::string FullPluginName(std::string_view index, std::string_view name) {
  return std::string(index).append("-").append(name);
}

}  // namespace resmgr::nri
