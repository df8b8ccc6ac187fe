// SPDX-License-Identifier: Apache-2.0
#include "pkg/classes/class_journal.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

#include "pkg/base/ids.h"
#include "pkg/base/json.h"
#include "pkg/base/parse.h"
#include "pkg/classes/host_files.h"
#include "pkg/sys/files.h"

namespace resmgr {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kHead = "cri-resmgr classes ";
constexpr int64_t kVersion = 1;

std::string HashOf(std::string_view text) {
  return fmt::format("{:016x}", TextHash()(text));
}

// Whether this is a list of path, first, wanted and former text.
bool IsEntry(const Json& file) {
  return file.is_array() && file.size() >= 4 && std::ranges::all_of(file, &Json::is_string);
}

// False for a path that leads out of the host's root.
bool IsPath(std::string_view path) {
  if (path.empty() || path.starts_with('/')) return false;
  for (const std::string_view part : Split(path, '/')) {
    if (part.empty() || part == "..") return false;
  }
  return true;
}

// Whether the file keeps its value when the machine boots: it is on a disk, such as irqbalance's
// environment file.
bool OutlivesBoot(std::string_view path) {
  return !IsOfKernel(path) && !path.starts_with("run/");
}

Status Damaged() {
  return InvalidArgument("the journal of the classes is damaged");
}

}  // namespace

std::string JournalText(const ClassJournal::Entries& entries, std::string_view boot) {
  Json files = Json::array();
  for (const auto& [path, entry] : entries)
    files.push_back(Json::array({path, entry.first, entry.wanted, entry.was}));
  const std::string body =
      JsonText({{"boot", std::string(boot)}, {"files", std::move(files)}}) + "\n";
  return fmt::format("{}{} {}\n{}", kHead, kVersion, HashOf(body), body);
}

StatusOr<ClassJournal::Entries> ParseJournal(std::string_view text, std::string_view boot) {
  const size_t end = text.find('\n');
  if (end == std::string_view::npos || !text.starts_with(kHead)) return Damaged();
  const std::vector<std::string_view> head =
      Split(text.substr(kHead.size(), end - kHead.size()), ' ');
  const std::optional<int64_t> version = ParseInt(head[0]);
  if (version && *version > kVersion)
    return FailedPrecondition("the journal of the classes is of version {}, which is newer than {}",
                              *version, kVersion);
  const std::string_view body = text.substr(end + 1);
  if (version != kVersion || head.size() != 2 || head[1] != HashOf(body)) return Damaged();
  const std::optional<Json> parsed = ParseJson(body);
  if (!parsed || !parsed->is_object()) return Damaged();
  ClassJournal::Entries entries;
  const auto wrote = parsed->find("boot");
  if (wrote == parsed->end() || !wrote->is_string()) return Damaged();
  const bool known = !boot.empty() && !wrote->get_ref<const std::string&>().empty();
  const bool other_boot = known && *wrote != boot;
  for (const Json& file : parsed->value("files", Json::array())) {
    if (!IsEntry(file)) return Damaged();
    const auto texts = file.get<std::vector<std::string>>();
    if (!IsPath(texts[0])) return Damaged();
    if (other_boot && !OutlivesBoot(texts[0])) continue;
    entries.emplace(texts[0], JournalEntry{texts[1], texts[2], texts[3]});
  }
  return entries;
}

Status ClassJournal::Claim() {
  if (claim_.valid()) return OkStatus();
  RESMGR_ASSIGN_OR_RETURN(claim_, ClaimDirectory(directory_));
  return OkStatus();
}

Status ClassJournal::Open() {
  if (opened_) return OkStatus();
  Status claimed = Claim();
  // If the directory does not exist, no earlier process has left entries.
  if (!claimed.ok() && claimed.code() != StatusCode::kNotFound) return claimed;
  if (claimed.ok()) RESMGR_RETURN_IF_ERROR(Read());
  opened_ = true;
  return OkStatus();
}

Status ClassJournal::Read() {
  const StatusOr<std::string> text = ReadFile(path(), kMostBytes);
  if (!text.ok() && text.status().code() == StatusCode::kNotFound) return OkStatus();
  if (!text.ok()) return text.status();
  StatusOr<Entries> entries = ParseJournal(*text, boot_);
  if (entries.ok()) {
    entries_ = *std::move(entries);
    return OkStatus();
  }
  if (entries.status().code() != StatusCode::kInvalidArgument) return entries.status();
  const std::string aside = path() + ".damaged";
  if (std::rename(path().c_str(), aside.c_str()) != 0)
    return Unavailable("cannot put the damaged {} aside", path());
  damage_ = fmt::format(
      "the journal of an earlier run was damaged and is now {}: what it changed "
      "of the host is not given back",
      aside);
  return OkStatus();
}

Status ClassJournal::Save(Entries entries) {
  RESMGR_RETURN_IF_ERROR(Open());
  if (!claim_.valid()) {
    std::error_code failed;
    std::filesystem::create_directories(directory_, failed);
    if (failed) return Unavailable("cannot make {}: {}", directory_, failed.message());
    RESMGR_RETURN_IF_ERROR(Claim());
    // Another process may have used the directory since Open.
    RESMGR_RETURN_IF_ERROR(Read());
    if (!entries_.empty()) return Unavailable("another process has just used {}", directory_);
  }
  const std::string text = JournalText(entries, boot_);
  if (text.size() > kMostBytes) return ResourceExhausted("the journal would have too many bytes");
  RESMGR_RETURN_IF_ERROR(AtomicWriteFile(path(), text, 0600));
  entries_ = std::move(entries);
  return OkStatus();
}

}  // namespace resmgr
