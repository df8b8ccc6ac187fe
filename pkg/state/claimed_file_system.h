// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "pkg/state/file_system.h"
#include "pkg/sys/unique_fd.h"

namespace resmgr {

// A file system in which only the process that has claimed a directory changes its files: two
// daemons must not undo each other's state, and one that starts while the former still finishes
// calls writes only after that. All other operations pass unchanged. The first use that finds the
// directory free claims it for the life of this object; reading claims it, too, but works without
// the claim.
//
// Uses of the directory, and Claim, are for one thread at a time.
class ClaimedFileSystem final : public FileSystem {
 public:
  // `files` must outlive this. `on_refusal` is told of the first claim that fails, on the thread
  // that made it.
  ClaimedFileSystem(
      FileSystem& files, std::string directory,
      std::function<void(const Status&)> on_refusal = [](const Status&) {})
      : files_(files), directory_(std::move(directory)), on_refusal_(std::move(on_refusal)) {}

  // Makes the directory where it is missing. AlreadyExists: another process has it.
  Status Claim();

  StatusOr<std::string> Read(const std::string& path, size_t limit) override;
  StatusOr<std::unique_ptr<File>> Create(const std::string& path) override;
  Status Rename(const std::string& from, const std::string& to) override;
  Status Remove(const std::string& path) override;
  Status SyncDirectory(const std::string& directory) override;
  Status MakeDirectory(const std::string& directory) override;

 private:
  Status TryToClaim();
  // OK for files elsewhere.
  Status ClaimFor(const std::string& path);

  FileSystem& files_;
  const std::string directory_;
  std::function<void(const Status&)> on_refusal_;  // nullptr after its call
  UniqueFd claim_;
};

}  // namespace resmgr
