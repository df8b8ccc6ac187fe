// SPDX-License-Identifier: Apache-2.0
#include "pkg/kube/names.h"

#include <algorithm>

#include "pkg/base/parse.h"

namespace resmgr {

namespace {

constexpr size_t kMaxSubdomain = 253;
constexpr size_t kMaxLabelName = 63;

bool IsSmallOrDigit(char c) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

bool IsLetterOrDigit(char c) {
  return IsSmallOrDigit(c) || (c >= 'A' && c <= 'Z');
}

bool IsSubdomainPart(std::string_view part) {
  return !part.empty() && IsSmallOrDigit(part.front()) && IsSmallOrDigit(part.back()) &&
         std::all_of(part.begin(), part.end(),
                     [](char c) { return IsSmallOrDigit(c) || c == '-'; });
}

bool IsLabelName(std::string_view name) {
  return !name.empty() && name.size() <= kMaxLabelName && IsLetterOrDigit(name.front()) &&
         IsLetterOrDigit(name.back()) && std::all_of(name.begin(), name.end(), [](char c) {
           return IsLetterOrDigit(c) || c == '-' || c == '_' || c == '.';
         });
}

}  // namespace

bool IsSubdomain(std::string_view name) {
  const auto parts = Split(name, '.');
  return name.size() <= kMaxSubdomain && std::all_of(parts.begin(), parts.end(), IsSubdomainPart);
}

bool IsLabelKey(std::string_view key) {
  const size_t slash = key.find('/');
  if (slash == std::string_view::npos) return IsLabelName(key);
  return IsSubdomain(key.substr(0, slash)) && IsLabelName(key.substr(slash + 1));
}

}  // namespace resmgr
