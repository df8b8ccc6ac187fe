// SPDX-License-Identifier: Apache-2.0
#include "pkg/state/open_calls.h"

#include <array>
#include <utility>

namespace resmgr {
namespace {

// The file: a header, then one entry of eight bytes, low byte first, per note. An odd entry means
// that the call with this hash has begun, the even number below it that the call has ended.
constexpr std::string_view kFileHeader = "calls 1\n";
constexpr size_t kEntry = 8;
// The file is rewritten if it has this many entries and most of them are about ended calls.
constexpr size_t kManyEntries = 8192;
// Enough for starts and updates of a hundred thousand containers at the same time.
constexpr size_t kMaxFile = size_t{2} << 20;

void AppendEntry(uint64_t entry, std::string& bytes) {
  std::array<char, kEntry> encoded;
  for (size_t i = 0; i < kEntry; ++i)
    encoded[i] = static_cast<char>(entry >> (8 * i) & 0xff);
  bytes.append(encoded.data(), kEntry);
}

uint64_t Decode(std::string_view bytes) {
  uint64_t entry = 0;
  for (size_t i = 0; i < kEntry; ++i)
    entry |= uint64_t{static_cast<unsigned char>(bytes[i])} << (8 * i);
  return entry;
}

}  // namespace

OpenCalls::OpenCalls(FileSystem& files, std::string path, Report report)
    : files_(&files), path_(std::move(path)), report_(std::move(report)) {
  Load();
}

void OpenCalls::Begin(Key key) {
  if (!open_.insert(Entry(key)).second) return;
  Note(Entry(key));
  if (!gathering_) Write();
}

void OpenCalls::End(Key key) {
  if (open_.erase(Entry(key)) > 0) Note(Entry(key) - 1);
}

void OpenCalls::Retain(const std::vector<ContainerId>& ids) {
  complete_ = true;
  absl::flat_hash_set<uint64_t> kept;
  for (const ContainerId& id : ids) {
    for (const Kind kind : {Kind::kStart, Kind::kUpdate}) {
      const uint64_t entry = Entry(KeyOf(kind, id));
      if (open_.contains(entry)) kept.insert(entry);
    }
  }
  for (const uint64_t entry : std::exchange(open_, kept)) {
    if (!kept.contains(entry)) Note(entry - 1);
  }
  Write();
}

// FNV-1a, since the hash must be the same in every build, which std::hash does not guarantee.
OpenCalls::Key OpenCalls::KeyOf(Kind kind, const ContainerId& id) {
  constexpr uint64_t kBasis = 0xcbf29ce484222325;
  constexpr uint64_t kPrime = 0x100000001b3;
  uint64_t hash = (kBasis ^ static_cast<uint64_t>(kind)) * kPrime;
  for (const char byte : id.value())
    hash = (hash ^ static_cast<unsigned char>(byte)) * kPrime;
  return Key{hash | 1};
}

void OpenCalls::Load() {
  const StatusOr<std::string> content = files_->Read(path_, kMaxFile);
  if (!content.ok()) {
    if (content.status().code() != StatusCode::kNotFound) report_(Message(content.status()));
    return;
  }
  std::string_view rest = *content;
  if (!rest.starts_with(kFileHeader)) {
    report_("the notes of open calls cannot be read: the header is damaged");
    return;
  }
  // Half an entry at the end, left by a power failure, is ignored.
  for (rest.remove_prefix(kFileHeader.size()); rest.size() >= kEntry; rest.remove_prefix(kEntry)) {
    const uint64_t entry = Decode(rest);
    if (entry % 2 == 1) {
      open_.insert(entry);
    } else {
      open_.erase(entry + 1);
    }
  }
  complete_ = true;
}

void OpenCalls::Note(uint64_t entry) {
  if (files_ != nullptr) AppendEntry(entry, unwritten_);
}

void OpenCalls::Write() {
  gathering_ = false;
  if (unwritten_.empty()) return;
  const bool append = file_ != nullptr && written_ < kManyEntries + 2 * open_.size();
  const Status status = append ? Append() : Rewrite();
  // After an error all open calls are written anew, so single notes are not needed.
  unwritten_.clear();
  const Status before = std::exchange(noted_, status);
  if (status.ok()) {
    if (!before.ok()) report_("open calls are noted again");
    return;
  }
  // The next note tries again and writes all open calls. Until then the file lacks calls, and must
  // not be taken for complete. If it cannot be removed either, no more can be done.
  file_.reset();
  (void)files_->Remove(path_);
  if (before.ok()) report_(fmt::format("open calls cannot be noted: {}", Message(status)));
}

// Writes all calls that are open now, the latest change included.
Status OpenCalls::Rewrite() {
  const std::string next = path_ + ".new";
  // The path may have no directory.
  if (const size_t slash = path_.rfind('/'); slash != std::string::npos) {
    RESMGR_RETURN_IF_ERROR(files_->MakeDirectory(path_.substr(0, slash)));
  }
  RESMGR_ASSIGN_OR_RETURN(std::unique_ptr<FileSystem::File> file, files_->Create(next));
  std::string content(kFileHeader);
  for (const uint64_t hash : open_)
    AppendEntry(hash, content);
  RESMGR_RETURN_IF_ERROR(file->Append(content));
  RESMGR_RETURN_IF_ERROR(files_->Rename(next, path_));
  file_ = std::move(file);
  written_ = open_.size();
  return OkStatus();
}

Status OpenCalls::Append() {
  written_ += unwritten_.size() / kEntry;
  return file_->Append(unwritten_);
}

}  // namespace resmgr
