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

// What one file of the hook directory says: a JSON object, as koordlet writes it for
// koord-runtime-proxy.
//
//   remote-endpoint  path of the server's unix socket, absolute; "unix://" before it is left out
//   failure-policy   "Fail" or "Ignore", in any case; absent or "": Ignore
//   runtime-hooks    names of HookPoint; what is unknown is left out with a warning
//   mode             "echo" (the default) or "sparse": AnswerStyle; koord-runtime-proxy ignores it
//   timeout          "2s", "500ms"; likewise
struct HookFile {
  HookServerSettings settings;
  std::vector<std::string> warnings;  // fit for a log; kMostHookWarnings at most
};

inline constexpr size_t kLongestHookFile = size_t{64} << 10;
// A hook file has a list in an object; what is deeper is not read.
inline constexpr size_t kDeepestHookFile = 8;
inline constexpr size_t kMostHookWarnings = 9;
// The kubelet gives up most calls after two minutes.
inline constexpr std::chrono::milliseconds kLongestHookTimeout = std::chrono::minutes(2);

// `file` is the file's name in its directory, `timeout` what counts where it has none.
// InvalidArgument: it is empty, no such JSON, too long or too deep, or one of these keys has a
// value that is none of the above; the message does not name the file. Any thread.
StatusOr<HookFile> ParseHookFile(std::string_view file, std::string_view text,
                                 std::chrono::milliseconds timeout);

// The settings that count in a file that cannot be used, as far as it is JSON: which calls its
// server would be asked about, and whether they are refused without it. Any thread.
struct UnusableHookFile {
  FailurePolicy failure = FailurePolicy::kIgnore;
  HookPointSet points{};
};
UnusableHookFile ReadUnusableHookFile(std::string_view text);

}  // namespace resmgr::hooks
