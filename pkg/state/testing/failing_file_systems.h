// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <string_view>
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
  // As on a full disk: each append asks, and nothing else.
  std::function<Status()> fail_append;

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
