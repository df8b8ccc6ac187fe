// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "pkg/base/status.h"

namespace resmgr {

// The few operations on files that the durable state needs, so that a test can stop the machine
// between any two of them. Calls may block on the disk. Thread-compatible.
class FileSystem {
 public:
  // A file that is only ever appended to.
  class File {
   public:
    virtual ~File() = default;
    virtual Status Append(std::string_view bytes) = 0;
    // Appended bytes survive a power failure afterwards.
    virtual Status Sync() = 0;
  };

  virtual ~FileSystem() = default;

  // NotFound when there is none; InvalidArgument when it is longer than `limit` bytes.
  virtual StatusOr<std::string> Read(const std::string& path, size_t limit) = 0;
  // An empty file, in place of one that may be there; mode 0600.
  virtual StatusOr<std::unique_ptr<File>> Create(const std::string& path) = 0;
  // Replaces an existing `to`. NotFound if `from` does not exist.
  virtual Status Rename(const std::string& from, const std::string& to) = 0;
  // NotFound if the file does not exist.
  virtual Status Remove(const std::string& path) = 0;
  // Creations and renames in the directory survive a power failure.
  virtual Status SyncDirectory(const std::string& directory) = 0;
  // Makes the directory, mode 0700, and those above it; fine when it is there.
  virtual Status MakeDirectory(const std::string& directory) = 0;
};

// The kernel's. Never destroyed.
FileSystem& RealFileSystem();

}  // namespace resmgr
