// SPDX-License-Identifier: Apache-2.0
#include "pkg/state/record_log.h"

#include <array>
#include <utility>

#include <zlib.h>

namespace resmgr {
namespace {

// "cri-resmgr" and the version of this format, in the file's first bytes.
constexpr std::string_view kMagic = "cri-resmgr-state";
constexpr uint32_t kVersion = 1;
constexpr uint8_t kLabel = 0;
constexpr uint8_t kPut = 1;
constexpr uint8_t kErase = 2;
// An entry: CRC-32 of what follows it, kind, size of the name, size of the value; name; value.
constexpr size_t kEntryHeader = 4 + 1 + 4 + 4;
// What waits for Sync is bounded.
constexpr size_t kWriteAbove = size_t{1} << 20;
constexpr size_t kRewriteAbove = size_t{512} << 10;

constexpr std::string_view kState = "state";
constexpr std::string_view kPrevious = "state.previous";
constexpr std::string_view kNew = "state.new";
constexpr std::string_view kNewer = "state.newer";

void SetNumber(std::string& text, size_t at, uint32_t number) {
  for (size_t i = 0; i < 4; ++i)
    text[at + i] = static_cast<char>(number >> (8 * i) & 0xff);
}

void AddNumber(std::string& text, uint32_t number) {
  text.append(4, '\0');
  SetNumber(text, text.size() - 4, number);
}

uint32_t NumberAt(std::string_view text, size_t at) {
  uint32_t number = 0;
  for (size_t i = 0; i < 4; ++i)
    number |= uint32_t{static_cast<uint8_t>(text[at + i])} << (8 * i);
  return number;
}

uint32_t Checksum(std::string_view bytes) {
  static_assert(sizeof(uInt) >= 4);
  const uLong sum = crc32(0, reinterpret_cast<const Bytef*>(bytes.data()),  // zlib's type
                          static_cast<uInt>(bytes.size()));
  return static_cast<uint32_t>(sum);
}

void AddEntry(std::string& text, uint8_t kind, std::string_view name, std::string_view value) {
  const size_t start = text.size();
  text.append(kEntryHeader, '\0');
  text[start + 4] = static_cast<char>(kind);
  SetNumber(text, start + 5, static_cast<uint32_t>(name.size()));
  SetNumber(text, start + 9, static_cast<uint32_t>(value.size()));
  text += name;
  text += value;
  SetNumber(text, start, Checksum(std::string_view(text).substr(start + 4)));
}

struct EntryView {
  uint8_t kind = 0;
  std::string_view name;
  std::string_view value;
};

// Takes the next whole entry off `rest`; false when there is none.
bool TakeEntry(std::string_view& rest, EntryView& entry) {
  if (rest.size() < kEntryHeader) return false;
  const uint32_t name_size = NumberAt(rest, 5);
  const uint32_t value_size = NumberAt(rest, 9);
  if (name_size > RecordLog::kMaxName || value_size > RecordLog::kMaxValue) return false;
  const size_t size = kEntryHeader + name_size + value_size;
  if (rest.size() < size) return false;
  if (NumberAt(rest, 0) != Checksum(rest.substr(4, size - 4))) return false;
  entry.kind = static_cast<uint8_t>(rest[4]);
  entry.name = rest.substr(kEntryHeader, name_size);
  entry.value = rest.substr(kEntryHeader + name_size, value_size);
  rest.remove_prefix(size);
  return true;
}

std::string FileHeader(std::string_view label) {
  std::string header(kMagic);
  AddNumber(header, kVersion);
  AddEntry(header, kLabel, "", label);
  return header;
}

}  // namespace

RecordLog::RecordLog(FileSystem& files, std::string directory, std::string label)
    : files_(files), directory_(std::move(directory)), label_(std::move(label)) {}

RecordLog::Found RecordLog::Load() {
  Found found;
  Verdict verdict = Read(PathOf(kState), found);
  if (verdict == Verdict::kNewer) {
    if (const Status kept = files_.Rename(PathOf(kState), PathOf(kNewer)); !kept.ok()) {
      found.complaints.emplace_back(Message(kept));
    }
  }
  keep_previous_ = verdict == Verdict::kUsable;
  const bool had = verdict == Verdict::kAbsent || verdict == Verdict::kDamaged;
  // A crash between the two renames of a rewriting leaves only the previous file.
  if (had && found.records.empty()) verdict = Read(PathOf(kPrevious), found);
  return found;
}

RecordLog::Verdict RecordLog::Read(const std::string& path, Found& found) {
  const StatusOr<std::string> text = files_.Read(path, kMaxFile);
  if (text.status().code() == StatusCode::kNotFound) return Verdict::kAbsent;
  if (!text.ok()) {
    found.complaints.emplace_back(Message(text.status()));
    return Verdict::kDamaged;
  }
  std::string_view rest = *text;
  if (rest.size() < kMagic.size() + 4 || !rest.starts_with(kMagic)) {
    found.complaints.push_back(fmt::format("{} is not a state file", path));
    return Verdict::kDamaged;
  }
  const uint32_t version = NumberAt(rest, kMagic.size());
  if (version != kVersion) {
    found.complaints.push_back(
        fmt::format("{} has version {}, this program reads {}", path, version, kVersion));
    return Verdict::kNewer;
  }
  rest.remove_prefix(kMagic.size() + 4);
  EntryView entry;
  if (!TakeEntry(rest, entry) || entry.kind != kLabel) {
    found.complaints.push_back(fmt::format("{} is damaged at its beginning", path));
    return Verdict::kDamaged;
  }
  if (entry.value != label_) {
    found.complaints.push_back(fmt::format("{} was written on another machine", path));
    return Verdict::kForeign;
  }
  while (TakeEntry(rest, entry)) {
    if (entry.kind == kPut) {
      found.records.insert_or_assign(std::string(entry.name), std::string(entry.value));
    } else if (entry.kind == kErase) {
      found.records.erase(std::string(entry.name));
    }
  }
  if (!rest.empty()) {
    found.complaints.push_back(
        fmt::format("the last {} bytes of {} cannot be read", rest.size(), path));
  }
  return Verdict::kUsable;
}

Status RecordLog::Rewrite(const Views& live) {
  file_.reset();
  pending_.clear();
  RESMGR_RETURN_IF_ERROR(files_.MakeDirectory(directory_));
  RESMGR_ASSIGN_OR_RETURN(std::unique_ptr<FileSystem::File> file, files_.Create(PathOf(kNew)));
  std::string text = FileHeader(label_);
  for (const auto& [name, value] : live)
    AddEntry(text, kPut, name, value);
  RESMGR_RETURN_IF_ERROR(file->Append(text));
  RESMGR_RETURN_IF_ERROR(file->Sync());
  if (keep_previous_) {
    Status kept = files_.Rename(PathOf(kState), PathOf(kPrevious));
    if (!kept.ok() && kept.code() != StatusCode::kNotFound) return kept;
  }
  RESMGR_RETURN_IF_ERROR(files_.Rename(PathOf(kNew), PathOf(kState)));
  RESMGR_RETURN_IF_ERROR(files_.SyncDirectory(directory_));
  keep_previous_ = true;
  file_ = std::move(file);
  size_ = text.size();
  return OkStatus();
}

Status RecordLog::Put(std::string_view name, std::string_view value) {
  if (name.size() > kMaxName || value.size() > kMaxValue) {
    return InvalidArgument("a record of {} bytes is too long for the state", value.size());
  }
  return Append(kPut, name, value);
}

Status RecordLog::Erase(std::string_view name) {
  return Append(kErase, name, "");
}

Status RecordLog::Append(uint8_t kind, std::string_view name, std::string_view value) {
  if (file_ == nullptr) return FailedPrecondition("the state file is not open");
  AddEntry(pending_, kind, name, value);
  return pending_.size() < kWriteAbove ? OkStatus() : Write();
}

Status RecordLog::Write() {
  if (file_ == nullptr) return FailedPrecondition("the state file is not open");
  if (pending_.empty()) return OkStatus();
  Status written = file_->Append(pending_);
  size_ += pending_.size();
  pending_.clear();
  if (!written.ok()) file_.reset();
  return written;
}

Status RecordLog::Sync() {
  RESMGR_RETURN_IF_ERROR(Write());
  Status synced = file_->Sync();
  // What did reach the disk after a failed sync, nobody knows.
  if (!synced.ok()) file_.reset();
  return synced;
}

bool RecordLog::WantsRewrite(size_t live_bytes) const {
  const size_t size = size_ + pending_.size();
  return size > kRewriteAbove && size > 4 * live_bytes;
}

Status RecordLog::Reset(FileSystem& files, const std::string& directory) {
  for (const std::string_view name : {kState, kPrevious, kNew}) {
    Status removed = files.Remove(fmt::format("{}/{}", directory, name));
    if (!removed.ok() && removed.code() != StatusCode::kNotFound) return removed;
  }
  return OkStatus();
}

std::string RecordLog::PathOf(std::string_view name) const {
  return fmt::format("{}/{}", directory_, name);
}

}  // namespace resmgr
