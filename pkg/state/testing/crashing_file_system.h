// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <vector>

#include "pkg/state/file_system.h"

namespace resmgr::test {

// Files in memory on a machine that loses power: after a given number of operations everything
// fails, and afterwards the files have the synced content plus any part of the rest, with changes
// of the directory in their order. Thread-safe, except for Content and the configuration.
class CrashingFileSystem : public FileSystem {
 public:
  explicit CrashingFileSystem(uint64_t seed) : random_(seed) {}

  // The operation with this number, counted from 0 and from now, is the first to fail.
  void CrashAfter(int operations) { left_ = operations; }
  bool crashed() const { return left_ == 0; }
  // The power is back.
  void Reboot();

  // Errors without a crash: each operation asks.
  std::function<Status()> fail;

  StatusOr<std::string> Read(const std::string& path, size_t limit) override;
  StatusOr<std::unique_ptr<File>> Create(const std::string& path) override;
  Status Rename(const std::string& from, const std::string& to) override;
  Status Remove(const std::string& path) override;
  Status SyncDirectory(const std::string& directory) override;
  Status MakeDirectory(const std::string& directory) override;

  // For tests that damage files: the content that is read.
  std::string& Content(const std::string& path) { return files_.at(path)->content; }
  bool Exists(const std::string& path) const { return files_.contains(path); }

 private:
  struct Node {
    std::string content;
    size_t synced = 0;  // bytes that survive
  };
  using Directory = std::map<std::string, std::shared_ptr<Node>>;
  class OpenFile;

  Status Operate();

  std::mutex mutex_;
  std::mt19937_64 random_;
  int left_ = -1;  // operations until the crash; below 0: never
  Directory files_;
  std::vector<Directory> history_ = {{}};  // since the last sync of the directory, oldest first
};

}  // namespace resmgr::test
