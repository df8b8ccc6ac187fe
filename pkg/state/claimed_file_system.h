// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "pkg/state/file_system.h"
#include "pkg/sys/unique_fd.h"

namespace resmgr {

// Files of which those in one directory are changed only by the process that has claimed it: two
// daemons must not undo what the other keeps, and one that starts while the former one still ends
// calls in flight writes when that is over. Everything else passes as it is. The directory is
// claimed by the first use that finds it free, and for as long as this exists: reading is one, but
// goes on without.
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
  std::function<void(const Status&)> on_refusal_;  // nullptr when it was told
  UniqueFd claim_;
};

}  // namespace resmgr
