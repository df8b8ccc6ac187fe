// SPDX-License-Identifier: Apache-2.0
#include "pkg/dump/json_tree.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "pkg/base/json.h"
#include "pkg/base/parse.h"
#include "pkg/dump/secrets.h"

namespace resmgr::dump {
namespace {

// More than any body of the Docker API; each level takes stack.
constexpr int kMostLevels = 100;
constexpr std::string_view kAnnotation = "annotation.";
constexpr std::array<std::string_view, 6> kCredentials = {
    "auth", "email", "identitytoken", "password", "registrytoken", "serveraddress"};

// "NAME=<redacted>".
void HideValues(nlohmann::json& list) {
  if (!list.is_array()) {
    list = kRedacted;
    return;
  }
  for (nlohmann::json& entry : list) {
    const std::string text = entry.is_string() ? entry.get<std::string>() : "";
    entry = text.substr(0, text.find('=')).append("=").append(kRedacted);
  }
}

bool IsSecretLabel(std::string_view name) {
  if (name.starts_with(kAnnotation)) name.remove_prefix(kAnnotation.size());
  return IsSecretAnnotation(name);
}

void Hide(nlohmann::json& value, int level) {
  if (!value.is_structured()) return;
  if (level == kMostLevels) {
    value = kRedacted;
    return;
  }
  if (value.is_array()) {
    for (nlohmann::json& entry : value)
      Hide(entry, level + 1);
    return;
  }
  for (auto& [name, member] : value.items()) {
    const std::string small = ToLower(name);
    if (small == "env") {
      HideValues(member);
    } else if (std::ranges::find(kCredentials, small) != kCredentials.end() ||
               IsSecretLabel(name)) {
      member = kRedacted;
    } else {
      Hide(member, level + 1);
    }
  }
}

}  // namespace

nlohmann::json JsonTree(const Payload& payload, bool show_secrets) {
  if (payload.bytes.empty()) return nlohmann::json::object();
  std::optional<nlohmann::json> tree = ParseJson(payload.bytes);
  if (!tree) return {{"undecodable", fmt::format("{} bytes", payload.bytes.size())}};
  if (!show_secrets) Hide(*tree, 0);
  if (tree->is_object()) return *std::move(tree);
  return {{"value", *std::move(tree)}};
}

}  // namespace resmgr::dump
