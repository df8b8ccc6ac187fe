// SPDX-License-Identifier: Apache-2.0
#include "pkg/claims/claim_names.h"

#include <algorithm>

#include <fmt/format.h>

namespace resmgr {
namespace {

constexpr std::string_view kDevicePrefix = "claim-";
constexpr std::string_view kVariablePrefix = "DRA_CPUSET_";
constexpr size_t kLongestUid = 64;

bool IsUidCharacter(char c) {
  return ('a' <= c && c <= 'z') || ('A' <= c && c <= 'Z') || ('0' <= c && c <= '9') || c == '-';
}

std::optional<std::string_view> UidAfter(std::string_view prefix, std::string_view text) {
  if (!text.starts_with(prefix)) return std::nullopt;
  text.remove_prefix(prefix.size());
  if (!IsClaimUid(text)) return std::nullopt;
  return text;
}

}  // namespace

bool IsClaimUid(std::string_view text) {
  return !text.empty() && text.size() <= kLongestUid && std::ranges::all_of(text, IsUidCharacter);
}

std::string ClaimDeviceName(std::string_view uid) {
  return fmt::format("{}{}", kDevicePrefix, uid);
}

std::string ClaimDevice(std::string_view kind, std::string_view uid) {
  return fmt::format("{}={}", kind, ClaimDeviceName(uid));
}

std::string ClaimVariable(std::string_view uid) {
  return fmt::format("{}{}", kVariablePrefix, uid);
}

std::optional<std::string_view> UidOfClaimDevice(std::string_view device) {
  for (const std::string_view kind : {kClaimKind, kCompatibleClaimKind}) {
    if (!device.starts_with(kind) || device.substr(kind.size(), 1) != "=") continue;
    return UidAfter(kDevicePrefix, device.substr(kind.size() + 1));
  }
  return std::nullopt;
}

std::optional<std::string_view> UidOfClaimVariable(std::string_view name) {
  return UidAfter(kVariablePrefix, name);
}

}  // namespace resmgr
