// SPDX-License-Identifier: Apache-2.0
#include "pkg/classes/subject_ways.h"

#include <array>
#include <cstddef>
#include <optional>

#include <sys/types.h>

#include "pkg/base/json.h"
#include "pkg/sys/files.h"

namespace resmgr {
namespace {

constexpr std::array<std::string_view, 3> kWays = {kAtCreation, "before start", "after start"};
constexpr size_t kLongestWays = size_t{4} << 20;
constexpr mode_t kWaysMode = 0600;

}  // namespace

void SubjectWays::Load() {
  if (std::exchange(loaded_, true) || file_.empty()) return;
  const StatusOr<std::string> text = ReadFile(file_, kLongestWays);
  const std::optional<nlohmann::json> parsed = text.ok() ? ParseJson(*text) : std::nullopt;
  if (!parsed || !parsed->is_object()) return;
  for (const auto& [id, way] : parsed->items()) {
    for (const std::string_view known : kWays)
      if (way == known) ways_.emplace(id, known);
  }
  saved_ = ways_;
}

std::string_view SubjectWays::Of(const ClassSubject& subject, bool there) {
  const std::string_view now = there ? kAtCreation : subject.running ? kWays[2] : kWays[1];
  if (subject.id.empty()) return now;
  Load();
  return ways_.emplace(subject.id, now).first->second;
}

void SubjectWays::KeepOnly(const std::vector<ClassSubject>& subjects) {
  Load();
  Ways kept;
  for (const ClassSubject& subject : subjects)
    if (const auto known = ways_.find(subject.id); known != ways_.end()) kept.insert(*known);
  ways_ = std::move(kept);
}

Status SubjectWays::Save() {
  if (file_.empty() || ways_ == saved_) return OkStatus();
  nlohmann::json all = nlohmann::json::object();
  for (const auto& [id, way] : ways_)
    all[id] = way;
  RESMGR_RETURN_IF_ERROR(AtomicWriteFile(file_, JsonText(all) + "\n", kWaysMode));
  saved_ = ways_;
  return OkStatus();
}

}  // namespace resmgr
