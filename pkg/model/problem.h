// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <string>
#include <vector>

namespace resmgr {

// Something that an operator should look after. A value.
struct Problem {
  std::string kind{};  // DESIGN 7.3: "throttled"
  // Since when it is so; the epoch where its part does not know.
  std::chrono::system_clock::time_point since{};
  std::string message{};               // a sentence with its numbers
  std::vector<std::string> objects{};  // "namespace/pod/container", "pool shared", "node 1"
  std::string next{};                  // what to try; may be empty

  friend bool operator==(const Problem&, const Problem&) = default;
};

}  // namespace resmgr
