// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "pkg/base/status.h"
#include "pkg/log/rate_limit.h"
#include "pkg/model/container.h"
#include "pkg/model/pod.h"

namespace resmgr {

// Limits the log of calls that the runtime refuses, since a kubelet repeats them and clients may
// send any number. A cause is logged once for each container, and again after an hour.
class RefusalLog {
 public:
  using Time = RateLimit::Clock::time_point;

  // nullopt: do not log. Otherwise log: returns how many refusals with news were not logged since
  // the last logged one, because there were too many.
  std::optional<uint64_t> Pass(std::string_view container, std::string_view cause, Time now) {
    const auto known = told_.find(container);
    if (known != told_.end() && known->second.cause == cause && now < known->second.until) {
      return std::nullopt;
    }
    const auto suppressed = limit_.Pass(now);
    if (!suppressed) return std::nullopt;
    // The whole memory is dropped if it is full: logging a cause again does less harm than
    // remembering all containers.
    if (known == told_.end() && told_.size() >= kMostContainers) told_.clear();
    told_.insert_or_assign(std::string(container),
                           Told{.cause = std::string(cause), .until = now + kRepeated});
    return suppressed;
  }

 private:
  static constexpr size_t kMostContainers = 256;
  static constexpr std::chrono::hours kRepeated{1};

  struct Told {
    std::string cause;
    Time until{};
  };
  // By name, since a container that was not created has another key at each try.
  std::map<std::string, Told, std::less<>> told_;
  RateLimit limit_{10, std::chrono::minutes(1)};
};

// Returns what an administrator can do about a container that the runtime does not update. `why` is
// the runtime's answer, OK if there was none yet. Example: "if cpu.idle is 1 in its cgroup, set it
// to 0; or delete pod ns/x".
std::string UpdateRemedy(const Pod& pod, const Container& container, const Status& why);

}  // namespace resmgr
