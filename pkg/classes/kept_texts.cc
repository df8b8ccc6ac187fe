// SPDX-License-Identifier: Apache-2.0
#include "pkg/classes/kept_texts.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

#include <sys/types.h>

#include "pkg/base/json.h"
#include "pkg/sys/files.h"

namespace resmgr {
namespace {

constexpr size_t kLongestFile = size_t{4} << 20;
constexpr mode_t kFileMode = 0600;

constexpr std::array<std::string_view, 3> kWays = {kAtCreation, "before start", "after start"};

}  // namespace

void KeptTexts::Load() {
  if (std::exchange(loaded_, true) || file_.empty()) return;
  const StatusOr<std::string> content = ReadFile(file_, kLongestFile);
  const std::optional<nlohmann::json> parsed = content.ok() ? ParseJson(*content) : std::nullopt;
  if (!parsed || !parsed->is_object()) return;
  for (const auto& [id, text] : parsed->items())
    if (text.is_string()) texts_.emplace(id, text.get<std::string>());
  saved_ = texts_;
}

const std::string* KeptTexts::Find(std::string_view id) {
  Load();
  const auto found = texts_.find(id);
  return found == texts_.end() ? nullptr : &found->second;
}

void KeptTexts::Set(const std::string& id, std::string text) {
  Load();
  texts_.insert_or_assign(id, std::move(text));
}

void KeptTexts::KeepOnly(const std::vector<ClassSubject>& subjects) {
  Load();
  Texts kept;
  for (const ClassSubject& subject : subjects)
    if (const auto known = texts_.find(subject.id); known != texts_.end()) kept.insert(*known);
  texts_ = std::move(kept);
}

Status KeptTexts::Save() {
  if (file_.empty() || texts_ == saved_) return OkStatus();
  nlohmann::json all = nlohmann::json::object();
  for (const auto& [id, text] : texts_)
    all[id] = text;
  // If this fails, so does the next step.
  std::error_code ignored;
  std::filesystem::create_directories(std::filesystem::path(file_).parent_path(), ignored);
  RESMGR_RETURN_IF_ERROR(AtomicWriteFile(file_, JsonText(all) + "\n", kFileMode));
  saved_ = texts_;
  return OkStatus();
}

std::string_view WayOf(const ClassSubject& subject, bool there, KeptTexts& ways) {
  const std::string_view now = there ? kAtCreation : subject.running ? kWays[2] : kWays[1];
  if (subject.id.empty()) return now;
  if (const std::string* const kept = ways.Find(subject.id); kept != nullptr) {
    const auto* const known = std::ranges::find(kWays, *kept);
    if (known != kWays.end()) return *known;
  }
  ways.Set(subject.id, std::string(now));
  return now;
}

}  // namespace resmgr
