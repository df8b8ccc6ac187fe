// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pkg/base/status.h"
#include "pkg/classes/class_plan.h"

namespace resmgr {

// The value of ClassPart::way for a container that began with its class.
inline constexpr std::string_view kAtCreation = "at creation";

// Whether the container has no cgroup yet, and will have one: containerd makes it at the start.
inline bool AwaitsCgroup(const ClassSubject& subject, std::string_view cgroup) {
  return subject.id.empty() || (cgroup.empty() && !subject.running);
}

// Remembers for each container how its class came into force: that shows only when the worker sees
// the container for the first time. Thread-compatible.
class SubjectWays {
 public:
  // `file` keeps the ways for the next process; "": they are not kept. It is read at the first use.
  explicit SubjectWays(std::string file = "") : file_(std::move(file)) {}

  // `there`: the settings of the class are in force already.
  std::string_view Of(const ClassSubject& subject, bool there);
  // Forgets all other containers.
  void KeepOnly(const std::vector<ClassSubject>& subjects);
  // Writes the file if it differs. May block.
  Status Save();

 private:
  using Ways = std::map<std::string, std::string_view, std::less<>>;  // by container id

  void Load();

  const std::string file_;
  bool loaded_ = false;
  Ways ways_;
  Ways saved_;
};

}  // namespace resmgr
