// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "pkg/base/status.h"
#include "pkg/sys/unique_fd.h"

namespace resmgr {

// The file operations that the durable state needs, so that a test can simulate a crash of the
// machine between any two of them. Calls may block on the disk. Thread-compatible.
class FileSystem {
 public:
  // A file that is only ever appended to.
  class File {
   public:
    virtual ~File() = default;
    virtual Status Append(std::string_view bytes) = 0;
    // After success the appended bytes survive a power failure.
    virtual Status Sync() = 0;
  };

  virtual ~FileSystem() = default;

  // NotFound if the file does not exist; InvalidArgument if it is longer than `limit` bytes.
  virtual StatusOr<std::string> Read(const std::string& path, size_t limit) = 0;
  // Makes an empty file with mode 0600, and replaces an existing one.
  virtual StatusOr<std::unique_ptr<File>> Create(const std::string& path) = 0;
  // Replaces an existing `to`. NotFound if `from` does not exist.
  virtual Status Rename(const std::string& from, const std::string& to) = 0;
  // NotFound if the file does not exist.
  virtual Status Remove(const std::string& path) = 0;
  // After success, creations and renames in the directory survive a power failure.
  virtual Status SyncDirectory(const std::string& directory) = 0;
  // Makes the directory with mode 0700, and its parents; OK if it exists.
  virtual Status MakeDirectory(const std::string& directory) = 0;
};

// The operations of the kernel. Never destroyed.
FileSystem& RealFileSystem();

// A file system in which only the process that has claimed a directory changes its files: two
// daemons must not undo each other's state, and a daemon that starts while the former one still
// finishes calls must not write before that. Files elsewhere are not affected. The first use that
// finds the directory free claims it for the life of this object; reading claims it, too, but also
// works without the claim.
//
// Uses of the directory, and Claim, are for one thread at a time.
class ClaimedFileSystem final : public FileSystem {
 public:
  // `files` must outlive this. `on_refusal` is called once, for the first claim that fails, on the
  // thread of that use.
  ClaimedFileSystem(
      FileSystem& files, std::string directory,
      std::function<void(const Status&)> on_refusal = [](const Status&) {})
      : files_(files), directory_(std::move(directory)), on_refusal_(std::move(on_refusal)) {}

  // Makes the directory if it is missing. AlreadyExists: another process has claimed it.
  Status Claim();

  StatusOr<std::string> Read(const std::string& path, size_t limit) override;
  StatusOr<std::unique_ptr<File>> Create(const std::string& path) override;
  Status Rename(const std::string& from, const std::string& to) override;
  Status Remove(const std::string& path) override;
  Status SyncDirectory(const std::string& directory) override;
  Status MakeDirectory(const std::string& directory) override;

 private:
  Status TryToClaim();
  // Claims the directory if the file is in it; OK for files elsewhere.
  Status ClaimFor(const std::string& path);

  FileSystem& files_;
  const std::string directory_;
  std::function<void(const Status&)> on_refusal_;  // nullptr after it was called
  UniqueFd claim_;
};

}  // namespace resmgr
