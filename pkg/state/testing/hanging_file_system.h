// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>

#include "pkg/state/file_system.h"

namespace resmgr::test {

// Files on a disk whose syncs hang from Hang() to ComeBack(), or whose reading or renaming does.
// Thread-safe.
// A thread that is left behind in a hanging call holds a file, so a test waits with WaitClosed
// before this ends.
class HangingFileSystem : public FileSystem {
 public:
  // `files` must outlive this.
  explicit HangingFileSystem(FileSystem& files) : files_(files) {}

  void Hang();
  // Lets reading of the state hang (not of the open calls, which the loop's thread reads).
  void HangReading();
  // Lets a rename to this name hang, as at the rewriting of a state.
  void HangRenameTo(std::string name);
  void ComeBack();
  // Waits until a call hangs; until no file is open.
  void WaitHanging();
  void WaitClosed();

  StatusOr<std::string> Read(const std::string& path, size_t limit) override;
  StatusOr<std::unique_ptr<File>> Create(const std::string& path) override;
  Status Rename(const std::string& from, const std::string& to) override;
  Status Remove(const std::string& path) override { return files_.Remove(path); }
  Status SyncDirectory(const std::string& directory) override;
  Status MakeDirectory(const std::string& directory) override {
    return files_.MakeDirectory(directory);
  }

 private:
  class OpenFile;
  void Pass(const bool& hangs);
  void Pass(std::unique_lock<std::mutex>& lock, const bool& hangs);

  FileSystem& files_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool hangs_ = false;
  bool reading_hangs_ = false;
  bool rename_hangs_ = false;
  std::string hanging_name_;  // to which renaming hangs
  int hanging_ = 0;
  int open_ = 0;
};

}  // namespace resmgr::test
