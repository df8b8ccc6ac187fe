// SPDX-License-Identifier: Apache-2.0
#include "pkg/dump/json_tree.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "pkg/base/json.h"
#include "pkg/base/parse.h"
#include "pkg/dump/secrets.h"

namespace resmgr::dump {
namespace {

// More than any body of the Docker API has; each level takes stack.
constexpr int kMostLevels = 100;
constexpr std::string_view kAnnotation = "annotation.";
// Names of secret members in lower case: credentials of registries, those of a swarm, and the
// contents of its secrets and configurations.
constexpr std::array<std::string_view, 13> kSecrets = {
    "auth",       "data",     "email",          "identitytoken", "jointoken",
    "jointokens", "password", "registrytoken",  "serveraddress", "signingcakey",
    "unlockkey",  "username", "x-registry-auth"};
// Members with options for drivers and builds, which may include passwords of network file systems.
constexpr std::array<std::string_view, 4> kOptions = {"buildargs", "driveropts", "options", "opts"};
// The options of a log driver, which may include tokens of the service that it sends to.
constexpr std::string_view kLogConfig = "logconfig";
constexpr std::string_view kLogOptions = "config";

// Replaces values by "NAME=<redacted>".
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

// Hides the values of options; their names are shown.
void HideOptions(nlohmann::json& options) {
  if (options.is_null()) return;
  if (!options.is_object()) {
    options = kRedacted;
    return;
  }
  for (nlohmann::json& option : options)
    option = kRedacted;
}

// A member's name in lower case as Go, and so dockerd, compares it: two further characters fold to
// "s" and "k".
std::string Folded(std::string_view name) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 2> kOthers = {
      {{"\u017f", "s"}, {"\u212a", "k"}}};
  std::string folded = ToLower(name);
  for (const auto& [other, letter] : kOthers) {
    for (size_t at = folded.find(other); at != std::string::npos; at = folded.find(other, at))
      folded.replace(at, other.size(), letter);
  }
  return folded;
}

bool IsSecretLabel(std::string_view name) {
  if (name.starts_with(kAnnotation)) name.remove_prefix(kAnnotation.size());
  return IsSecretAnnotation(name);
}

// `parent` is the folded name of the member with this value.
void Hide(nlohmann::json& value, std::string_view parent, int level) {
  if (!value.is_structured()) return;
  if (level == kMostLevels) {
    value = kRedacted;
    return;
  }
  if (value.is_array()) {
    for (nlohmann::json& entry : value)
      Hide(entry, parent, level + 1);
    return;
  }
  for (auto& [name, member] : value.items()) {
    const std::string folded = Folded(name);
    if (folded == "env") {
      HideValues(member);
    } else if (std::ranges::find(kSecrets, folded) != kSecrets.end() || IsSecretLabel(name)) {
      member = kRedacted;
    } else if (std::ranges::find(kOptions, folded) != kOptions.end() ||
               (parent == kLogConfig && folded == kLogOptions)) {
      HideOptions(member);
    } else {
      Hide(member, folded, level + 1);
    }
  }
}

}  // namespace

nlohmann::json JsonTree(const Payload& payload, bool show_secrets) {
  if (payload.bytes.empty()) return nlohmann::json::object();
  std::optional<nlohmann::json> tree = ParseJson(payload.bytes);
  if (!tree) return {{"undecodable", fmt::format("{} bytes", payload.bytes.size())}};
  if (!show_secrets) Hide(*tree, "", 0);
  if (tree->is_object()) return *std::move(tree);
  return {{"value", *std::move(tree)}};
}

}  // namespace resmgr::dump
