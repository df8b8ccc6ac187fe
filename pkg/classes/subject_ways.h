// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "pkg/classes/class_plan.h"

namespace resmgr {

// A way of a class (ClassPart::way): the container began with it.
inline constexpr std::string_view kAtCreation = "at creation";

// Whether the container has no cgroup yet, and will have one: containerd makes it at the start.
inline bool AwaitsCgroup(const ClassSubject& subject, std::string_view cgroup) {
  return subject.id.empty() || (cgroup.empty() && !subject.running);
}

// Remembers for each container how its class came into force: that shows only when the worker sees
// the container for the first time. Thread-compatible.
class SubjectWays {
 public:
  // `there`: what the class says is in force already.
  std::string_view Of(const ClassSubject& subject, bool there) {
    const std::string_view now = there             ? kAtCreation
                                 : subject.running ? "after start"
                                                   : "before start";
    if (subject.id.empty()) return now;
    return ways_.emplace(subject.id, now).first->second;
  }
  // Forgets all others.
  void KeepOnly(const std::vector<ClassSubject>& subjects) {
    std::map<std::string, std::string_view, std::less<>> kept;
    for (const ClassSubject& subject : subjects)
      if (const auto known = ways_.find(subject.id); known != ways_.end()) kept.insert(*known);
    ways_ = std::move(kept);
  }

 private:
  std::map<std::string, std::string_view, std::less<>> ways_;  // by container id
};

}  // namespace resmgr
