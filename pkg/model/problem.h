// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <chrono>
#include <string>
#include <string_view>
#include <vector>

namespace resmgr {

// Something that an operator should look after. A value type.
struct Problem {
  std::string kind{};  // one of kProblemKinds
  // The time at which the problem began; the epoch if that is not known.
  std::chrono::system_clock::time_point since{};
  std::string message{};               // a sentence with its numbers
  std::vector<std::string> objects{};  // "namespace/pod/container", "pool shared", "node 1"
  std::string next{};                  // advice for the administrator; may be empty

  friend bool operator==(const Problem&, const Problem&) = default;
};

// All kinds, a fixed outside contract.
inline constexpr std::array<std::string_view, 18> kProblemKinds = {
    "drift",          "refused",    "overcommit",  "cpuset-overridden",
    "cpu-manager-on", "socket",     "state",       "dump",
    "plugin",         "runtime",    "cpu-offline", "config-rejected",
    "class-inactive", "throttled",  "pressure",    "remote-memory",
    "out-of-memory",  "memory-high"};

// The section of the documentation about a kind: "docs/troubleshooting.md#drift".
inline std::string RunbookOf(std::string_view kind) {
  return "docs/troubleshooting.md#" + std::string(kind);
}

}  // namespace resmgr
