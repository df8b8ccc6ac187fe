// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "pkg/base/status.h"
#include "pkg/hooks/hook_port.h"

namespace resmgr::hooks {

// The contents of one file of the hook directory, a JSON object as koordlet writes it for
// koord-runtime-proxy:
//
//   remote-endpoint  absolute path of the server's unix socket; a leading "unix://" is removed
//   failure-policy   "Fail" or "Ignore", in any case; absent or "": Ignore
//   runtime-hooks    names of HookPoint; unknown ones are left out with a warning
//   mode             "echo" (the default) or "sparse": AnswerStyle; koord-runtime-proxy ignores it
//   timeout          "2s", "500ms"; koord-runtime-proxy ignores it
struct HookFile {
  HookServerSettings settings;
  std::vector<std::string> warnings;  // printable; at most kMostHookWarnings
};

inline constexpr size_t kLongestHookFile = size_t{64} << 10;
inline constexpr size_t kMostHookWarnings = 9;
// The kubelet gives up most calls after two minutes.
inline constexpr std::chrono::milliseconds kLongestHookTimeout = std::chrono::minutes(2);

// `file` is the file's name in its directory, `timeout` the default. kInvalidArgument: the text is
// empty, not a JSON object, too long or nested too deeply, or a key listed above has an invalid
// value; the message does not name the file. Any thread.
StatusOr<HookFile> ParseHookFile(std::string_view file, std::string_view text,
                                 std::chrono::milliseconds timeout);

// The settings of a file that cannot be used which still count, as far as the file is JSON: the
// hooks that its server wants, and whether calls are refused because the server is missing. Any
// thread.
HookServerSettings ReadUnusableHookFile(std::string_view file, std::string_view text);

}  // namespace resmgr::hooks
