// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "pkg/state/file_system.h"

namespace resmgr {

// Files that live as long as this object: the daemon's saved state across simulated restarts.
// Thread-safe.
class MemoryFileSystem : public FileSystem {
 public:
  StatusOr<std::string> Read(const std::string& path, size_t limit) override;
  StatusOr<std::unique_ptr<File>> Create(const std::string& path) override;
  Status Rename(const std::string& from, const std::string& to) override;
  Status Remove(const std::string& path) override;
  Status SyncDirectory(const std::string& directory) override;
  Status MakeDirectory(const std::string& directory) override;

 private:
  class OpenFile;

  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<std::string>> files_;
};

}  // namespace resmgr
