// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace resmgr {

// The file that is being read at this moment, for a thread that waits for the reader. Thread-safe.
class FileInHand {
 public:
  void Set(std::string_view path) {
    const std::lock_guard lock(mutex_);
    path_ = path;
  }
  std::string Get() const {
    const std::lock_guard lock(mutex_);
    return path_;
  }

 private:
  mutable std::mutex mutex_;
  std::string path_;
};

// Reads many small files of the kernel into one buffer. Only regular files are read, no links, and
// none is waited for. Thread-compatible.
class UsageFiles {
 public:
  // Longer files are left out, or cut off by functions that say so.
  static constexpr size_t kMostBytes = size_t{256} << 10;
  enum class TooLong { kLeaveOut, kCutOff };

  explicit UsageFiles(std::shared_ptr<FileInHand> in_hand);

  // The content, valid until the next call; nullopt: there is no such file, or it cannot be read.
  std::optional<std::string_view> Read(const std::string& path,
                                       TooLong too_long = TooLong::kLeaveOut);
  // A file that may be much longer, for those that are seldom read.
  static constexpr size_t kMostLongBytes = size_t{8} << 20;
  std::optional<std::string> ReadLong(const std::string& path);
  size_t files() const { return files_; }
  // Files that exist and could not be read, and why: the first few since the last call.
  std::vector<std::string> TakeErrors();

 private:
  void Fail(const std::string& path, std::string_view why);

  const std::shared_ptr<FileInHand> in_hand_;
  const std::unique_ptr<char[]> buffer_;
  size_t files_ = 0;
  std::vector<std::string> errors_;
};

}  // namespace resmgr
