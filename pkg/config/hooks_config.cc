// SPDX-License-Identifier: Apache-2.0
#include "pkg/config/hooks_config.h"

#include "pkg/base/parse.h"
#include "pkg/kube/names.h"

namespace resmgr {
namespace {

constexpr std::string_view kNoDirectory = "disabled";
// The kubelet gives up most calls after two minutes.
constexpr auto kLongestWait = std::chrono::minutes(2);

Status ReadDirectory(std::string_view text, std::string& directory) {
  const bool none = text.empty() || text == kNoDirectory;
  directory = none ? "" : text;
  if (none || text.front() == '/') return OkStatus();
  return InvalidArgument("\"{}\" is neither an absolute path nor \"{}\"", Printable(text),
                         kNoDirectory);
}

Status CheckSkipKey(std::string_view text) {
  // A key that no pod can have would never match.
  if (text.empty() || IsLabelKey(text)) return OkStatus();
  return InvalidArgument("\"{}\" is not a valid label key", Printable(text, 64));
}

void DescribeServers(ConfigSection& hooks, HooksConfig& config) {
  config.stated = true;
  hooks
      .Parse(
          "Directory", config.directory.empty() ? std::string(kNoDirectory) : config.directory,
          [&](std::string_view text) { return ReadDirectory(text, config.directory); },
          "the directory with a file `*.json` for each Koordinator hook server that is called; "
          "`disabled`: none")
      .Flag("hook-dir", "DIR");
  hooks.Duration("Timeout", std::chrono::milliseconds(1), kLongestWait, config.timeout,
                 "the time limit for an answer of a server whose file has no `timeout`");
  hooks
      .Text("SkipKey", config.skip_key,
            "servers are not called for pods that have this label or annotation with the value of "
            "`SkipValue` (`-hook-skip-value`); `\"\"` exempts no pods",
            CheckSkipKey)
      .Flag("hook-skip-key", "KEY");
  hooks
      .Text("SkipValue", config.skip_value,
            "the value that the label or annotation `SkipKey` (`-hook-skip-key`) must have")
      .Flag("hook-skip-value", "VALUE");
}

}  // namespace

void DescribeHooks(ConfigSection& root, HooksConfig& config) {
  root.Map(
      "hooks", [&config](ConfigSection& hooks) { DescribeServers(hooks, config); }, "Hook servers");
}

}  // namespace resmgr
