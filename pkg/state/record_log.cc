// SPDX-License-Identifier: Apache-2.0
#include "pkg/state/record_log.h"

#include <utility>

// Includes the algorithm's source, without the library, so that it is inlined.
#define XXH_INLINE_ALL
#include <xxhash.h>

namespace resmgr {
namespace {

constexpr size_t kKindAt = 4;
constexpr size_t kValueSizeAt = 9;

uint32_t Checksum(std::string_view bytes) {
  return static_cast<uint32_t>(XXH3_64bits(bytes.data(), bytes.size()));
}

// Stands at the beginning of the file, before the version of this format.
constexpr std::string_view kMagic = "cri-resmgr-state";
constexpr size_t kHeaderSize = kMagic.size() + 4;
constexpr size_t kRewriteAbove = size_t{512} << 10;

constexpr std::string_view kState = "state";
constexpr std::string_view kPrevious = "state.previous";
constexpr std::string_view kNew = "state.new";
constexpr std::string_view kNewer = "state.newer";
constexpr std::string_view kUnusable = ".unusable";

std::string FileHeader(const StateLabel& label) {
  std::string header(kMagic);
  header.resize(kHeaderSize);
  SetNumber(kLogVersion, header.data() + kMagic.size());
  for (const auto& [name, value] : label.Named()) {
    if (!value.empty()) AppendEntry(EntryKind::kLabel, name, value, header);
  }
  return header;
}

Status TooLong(size_t size) {
  return ResourceExhausted("a state of {} bytes exceeds the {} that a start reads", size,
                           RecordLog::kMaxFile);
}

}  // namespace

size_t BeginEntry(EntryKind kind, std::string_view name, std::string& text) {
  const size_t begin = text.size();
  text.resize(begin + kEntryNameAt + name.size());
  char* const entry = text.data() + begin;
  entry[kKindAt] = static_cast<char>(kind);
  SetNumber(static_cast<uint32_t>(name.size()), entry + kEntryNameSizeAt);
  name.copy(entry + kEntryNameAt, name.size());
  return begin;
}

void EndEntry(size_t begin, std::string& text) {
  char* const entry = text.data() + begin;
  const size_t size = text.size() - begin;
  const size_t value_size = size - kEntryNameAt - NumberAt(entry + kEntryNameSizeAt);
  SetNumber(static_cast<uint32_t>(value_size), entry + kValueSizeAt);
  SetNumber(Checksum({entry + kKindAt, size - kKindAt}), entry);
}

void AppendEntry(EntryKind kind, std::string_view name, std::string_view value, std::string& text) {
  const size_t begin = BeginEntry(kind, name, text);
  text += value;
  EndEntry(begin, text);
}

bool TakeEntry(std::string_view& rest, EntryView& entry) {
  if (rest.size() < kEntryNameAt) return false;
  const size_t name_size = NumberAt(rest.data() + kEntryNameSizeAt);
  const size_t value_size = NumberAt(rest.data() + kValueSizeAt);
  if (name_size > kMaxEntryName || value_size > kMaxEntryValue) return false;
  const size_t size = kEntryNameAt + name_size + value_size;
  if (rest.size() < size) return false;
  if (NumberAt(rest.data()) != Checksum(rest.substr(kKindAt, size - kKindAt))) return false;
  entry.kind = static_cast<EntryKind>(rest[kKindAt]);
  entry.name = rest.substr(kEntryNameAt, name_size);
  entry.value = rest.substr(kEntryNameAt + name_size, value_size);
  rest.remove_prefix(size);
  return true;
}

RecordLog::RecordLog(FileSystem& files, std::string directory, StateLabel label)
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
  // After a crash between the two renames of a rewriting, only the previous file is left.
  if (had && found.records.empty()) verdict = Read(PathOf(kPrevious), found);
  return found;
}

RecordLog::Verdict RecordLog::Read(const std::string& path, Found& found) {
  const StatusOr<std::string> text = files_.Read(path, kMaxFile);
  if (text.status().code() == StatusCode::kNotFound) return Verdict::kAbsent;
  if (!text.ok()) {
    std::string& complaint = found.complaints.emplace_back(Message(text.status()));
    // The file cannot be used, and a directory there would be in the way of the new file.
    if (text.status().code() == StatusCode::kInvalidArgument) {
      complaint += PutAside(path, fmt::format("{}{}", path, kUnusable));
    }
    return Verdict::kDamaged;
  }
  std::string_view rest = *text;
  if (rest.size() < kHeaderSize || !rest.starts_with(kMagic)) {
    found.complaints.push_back(fmt::format("{} is not a state file", path));
    return Verdict::kDamaged;
  }
  const uint32_t version = NumberAt(rest.data() + kMagic.size());
  if (version != kLogVersion) {
    found.complaints.push_back(
        fmt::format("{} has version {}, this program reads {}", path, version, kLogVersion));
    return Verdict::kNewer;
  }
  rest.remove_prefix(kHeaderSize);
  const Verdict labels = ReadLabels(path, rest, found.complaints);
  if (labels != Verdict::kUsable) return labels;
  EntryView entry;
  while (TakeEntry(rest, entry)) {
    if (entry.kind == EntryKind::kPut) {
      found.records.insert_or_assign(std::string(entry.name), std::string(entry.value));
    } else if (entry.kind == EntryKind::kErase) {
      found.records.erase(std::string(entry.name));
    }
  }
  if (!rest.empty()) {
    found.complaints.push_back(
        fmt::format("the last {} bytes of {} cannot be read", rest.size(), path));
  }
  return Verdict::kUsable;
}

RecordLog::Verdict RecordLog::ReadLabels(const std::string& path, std::string_view& rest,
                                         std::vector<std::string>& complaints) const {
  EntryView entry;
  if (!TakeEntry(rest, entry) || entry.kind != EntryKind::kLabel) {
    complaints.push_back(fmt::format("{} is damaged at its beginning", path));
    return Verdict::kDamaged;
  }
  bool ours = label_.Accepts("", entry.value);
  for (std::string_view next = rest; TakeEntry(next, entry) && entry.kind == EntryKind::kLabel;
       rest = next) {
    ours |= label_.Accepts(entry.name, entry.value);
  }
  if (ours) return Verdict::kUsable;
  complaints.push_back(fmt::format("{} was written on another machine", path));
  return Verdict::kForeign;
}

std::string RecordLog::PutAside(const std::string& path, const std::string& aside) {
  const Status moved = files_.Rename(path, aside);
  return moved.ok() ? fmt::format("; it is now {}", aside) : fmt::format("; {}", Message(moved));
}

Status RecordLog::Rewrite(std::string_view live) {
  file_.reset();
  std::string text = FileHeader(label_);
  if (live.size() > kMaxFile - text.size()) return TooLong(live.size());
  RESMGR_RETURN_IF_ERROR(files_.MakeDirectory(directory_));
  RESMGR_ASSIGN_OR_RETURN(std::unique_ptr<FileSystem::File> file, files_.Create(PathOf(kNew)));
  text += live;
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

Status RecordLog::Append(std::string_view entries) {
  if (file_ == nullptr) return FailedPrecondition("the state file is not open");
  if (entries.empty()) return OkStatus();
  if (entries.size() > kMaxFile - size_) {
    file_.reset();
    return TooLong(size_ + entries.size());
  }
  Status written = file_->Append(entries);
  size_ += entries.size();
  if (!written.ok()) file_.reset();
  return written;
}

Status RecordLog::Sync() {
  if (file_ == nullptr) return FailedPrecondition("the state file is not open");
  Status synced = file_->Sync();
  // After a failed sync it is not known what is on the disk.
  if (!synced.ok()) file_.reset();
  return synced;
}

bool RecordLog::WantsRewrite(size_t live_bytes) const {
  return size_ > kRewriteAbove &&
         (size_ > 4 * live_bytes || (size_ > kMaxFile / 2 && size_ > 2 * live_bytes));
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
