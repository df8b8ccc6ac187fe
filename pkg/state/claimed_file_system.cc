// SPDX-License-Identifier: Apache-2.0
#include "pkg/state/claimed_file_system.h"

#include <utility>

#include "pkg/sys/files.h"

namespace resmgr {

Status ClaimedFileSystem::Claim() {
  if (claim_.valid()) return OkStatus();
  Status claimed = TryToClaim();
  if (!claimed.ok() && on_refusal_) std::exchange(on_refusal_, nullptr)(claimed);
  return claimed;
}

Status ClaimedFileSystem::TryToClaim() {
  RESMGR_RETURN_IF_ERROR(files_.MakeDirectory(directory_));
  RESMGR_ASSIGN_OR_RETURN(claim_, ClaimDirectory(directory_));
  return OkStatus();
}

Status ClaimedFileSystem::ClaimFor(const std::string& path) {
  return path.starts_with(directory_ + "/") ? Claim() : OkStatus();
}

StatusOr<std::string> ClaimedFileSystem::Read(const std::string& path, size_t limit) {
  (void)ClaimFor(path);  // files of another process can be read without a claim
  return files_.Read(path, limit);
}

StatusOr<std::unique_ptr<FileSystem::File>> ClaimedFileSystem::Create(const std::string& path) {
  RESMGR_RETURN_IF_ERROR(ClaimFor(path));
  return files_.Create(path);
}

Status ClaimedFileSystem::Rename(const std::string& from, const std::string& to) {
  RESMGR_RETURN_IF_ERROR(ClaimFor(to));
  return files_.Rename(from, to);
}

Status ClaimedFileSystem::Remove(const std::string& path) {
  RESMGR_RETURN_IF_ERROR(ClaimFor(path));
  return files_.Remove(path);
}

Status ClaimedFileSystem::SyncDirectory(const std::string& directory) {
  return files_.SyncDirectory(directory);
}

Status ClaimedFileSystem::MakeDirectory(const std::string& directory) {
  return files_.MakeDirectory(directory);
}

}  // namespace resmgr
