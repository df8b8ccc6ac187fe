// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <string_view>

#include "pkg/state/file_system.h"

namespace resmgr::test {

// Files of a process that is killed between two changes, or in the middle of one: from a given
// change on they stay unchanged, although every call succeeds. Calls may come from one thread while
// another one stops and resumes. The notes of open calls (pkg/state/open_calls.h) are never behind:
// a daemon that is killed has written them.
class StoppingFileSystem : public FileSystem {
 public:
  // `files` must outlive this.
  explicit StoppingFileSystem(FileSystem& files) : files_(files) {}

  // The next `changes` changes are made. Half of the one after them is, when it is an append.
  void StopAfter(int changes);
  void Resume() { stopping_ = false; }
  // Whether the files have stopped or will.
  bool stopping() const { return stopping_; }

  StatusOr<std::string> Read(const std::string& path, size_t limit) override {
    return files_.Read(path, limit);
  }
  StatusOr<std::unique_ptr<File>> Create(const std::string& path) override;
  Status Rename(const std::string& from, const std::string& to) override;
  Status Remove(const std::string& path) override;
  Status SyncDirectory(const std::string& directory) override;
  Status MakeDirectory(const std::string& directory) override;

 private:
  class OpenFile;
  enum class Fate { kMade, kCut, kLost };

  static bool NeverBehind(std::string_view path) { return path.find("/calls") != path.npos; }
  Fate NextChange();

  FileSystem& files_;
  std::atomic<bool> stopping_ = false;
  std::atomic<int> left_ = 0;  // below 0: the one that was cut is over
};

}  // namespace resmgr::test
