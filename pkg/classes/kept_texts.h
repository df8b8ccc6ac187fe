// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "pkg/base/status.h"
#include "pkg/classes/class_plan.h"

namespace resmgr {

// Texts about containers, by the containers' ids, which the next process finds again in a file. May
// block. Thread-compatible.
class KeptTexts {
 public:
  // The file is read at the first use; "": nothing is kept.
  explicit KeptTexts(std::string file = "") : file_(std::move(file)) {}

  // nullptr: there is none.
  const std::string* Find(std::string_view id);
  void Set(const std::string& id, std::string text);
  // Forgets all other containers.
  void KeepOnly(const std::vector<ClassSubject>& subjects);
  // Writes the file if it differs.
  Status Save();

 private:
  using Texts = std::map<std::string, std::string, std::less<>>;

  void Load();

  const std::string file_;
  bool loaded_ = false;
  Texts texts_;
  Texts saved_;
};

// The value of ClassPart::way for a container that had its class from the start.
inline constexpr std::string_view kAtCreation = "at creation";

// How the container's class came into force. This can be seen only when the worker looks at the
// container for the first time, so `ways` keeps it. `there`: the settings of the class are in force
// already.
std::string_view WayOf(const ClassSubject& subject, bool there, KeptTexts& ways);

}  // namespace resmgr
