// SPDX-License-Identifier: Apache-2.0
#include "pkg/config/hooks_config.h"

#include <utility>

#include "pkg/base/parse.h"
#include "pkg/kube/duration.h"
#include "pkg/kube/names.h"

namespace resmgr {

namespace {

using std::chrono::milliseconds;

constexpr std::string_view kNoDirectory = "disabled";
constexpr milliseconds kShortestWait{1};
// The kubelet gives up most calls after two minutes.
constexpr milliseconds kLongestWait = std::chrono::minutes(2);

}  // namespace

StatusOr<std::string> HookDirectoryOf(std::string_view text) {
  if (text.empty() || text == kNoDirectory) return std::string();
  if (text.front() != '/') {
    return InvalidArgument("\"{}\" is neither an absolute path nor \"{}\"", Printable(text),
                           kNoDirectory);
  }
  return std::string(text);
}

StatusOr<std::string> HookSkipKeyOf(std::string_view text) {
  // A key that no pod can have would never match.
  if (!text.empty() && !IsLabelKey(text)) {
    return InvalidArgument("\"{}\" is not a valid label key", Printable(text, 64));
  }
  return std::string(text);
}

void ReadHooks(MapReader& hooks, HooksConfig& config) {
  config.stated = true;
  hooks.Parse("Directory", [&config](std::string_view text, const std::string&) -> Status {
    RESMGR_ASSIGN_OR_RETURN(config.directory, HookDirectoryOf(text));
    return OkStatus();
  });
  hooks.Duration("Timeout", kShortestWait, kLongestWait, config.timeout);
  hooks.Parse("SkipKey", [&config](std::string_view text, const std::string&) -> Status {
    RESMGR_ASSIGN_OR_RETURN(config.skip_key, HookSkipKeyOf(text));
    return OkStatus();
  });
  hooks.Text("SkipValue", config.skip_value);
}

ConfigNode HooksNode(const HooksConfig& config) {
  // Quoted, so that a value that looks like a boolean stays a text.
  ConfigNode skip_value = ScalarNode(config.skip_value);
  skip_value.quoted = true;
  return MapNode(
      {{"Directory", 1, ScalarNode(config.directory.empty() ? kNoDirectory : config.directory)},
       {"Timeout", 1, ScalarNode(DurationText(config.timeout))},
       {"SkipKey", 1, ScalarNode(config.skip_key)},
       {"SkipValue", 1, std::move(skip_value)}});
}

}  // namespace resmgr
