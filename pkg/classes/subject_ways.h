// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pkg/base/status.h"
#include "pkg/classes/class_plan.h"
#include "pkg/classes/kept_texts.h"

namespace resmgr {

// The value of ClassPart::way for a container that had its class from the start.
inline constexpr std::string_view kAtCreation = "at creation";

// Whether the container has no cgroup yet but will get one: containerd makes it at the start.
inline bool AwaitsCgroup(const ClassSubject& subject, std::string_view cgroup) {
  return subject.id.empty() || (cgroup.empty() && !subject.running);
}

// Remembers for each container how its class came into force, since that can be seen only when the
// worker looks at the container for the first time. Thread-compatible.
class SubjectWays {
 public:
  // `file` keeps the ways for the next process, and is read at the first use; "": they are not
  // kept.
  explicit SubjectWays(std::string file = "") : ways_(std::move(file)) {}

  // The way of this container. `there`: the settings of the class are in force already.
  std::string_view Of(const ClassSubject& subject, bool there);
  // Forgets all other containers.
  void KeepOnly(const std::vector<ClassSubject>& subjects) { ways_.KeepOnly(subjects); }
  // Writes the file if it differs. May block.
  Status Save() { return ways_.Save(); }

 private:
  KeptTexts ways_;
};

}  // namespace resmgr
