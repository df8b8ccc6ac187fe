// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include <sys/stat.h>
#include <sys/types.h>

#include "pkg/base/status.h"
#include "pkg/sys/unique_fd.h"

namespace resmgr::dump {

// The path of a file to be written. A path from outside this node (delivered by an agent) must not
// reach any file that the daemon, which is root, can write: such a path must be directly in
// `directory`. If `directory` is empty, every path is allowed.
struct OutputPlace {
  std::string path{};       // empty: no file
  std::string directory{};  // created with mode 0700 if missing; its parents are not created

  friend bool operator==(const OutputPlace&, const OutputPlace&) = default;
};

// kInvalidArgument if the path is not directly in the place's directory, or is too long. Checks
// only the names.
Status CheckPlace(const OutputPlace& place);

// Whether OutputFile::Create would succeed now, without changing anything. kInvalidArgument has the
// reason. Blocks on the disk.
Status ProbePlace(const OutputPlace& place);

// A file that is written from its beginning, readable for its owner only (mode 0600). Buffers up to
// 64 KiB. Used by one thread at a time. Every function may block on the disk.
class OutputFile {
 public:
  // Creates the file, or empties an existing one, which must be a regular file of this process's
  // user and have no second hard link: symbolic links, pipes, devices and other users' files are
  // never touched. kInvalidArgument names the obstacle. `pause`: from a failed write to the next
  // try.
  static constexpr std::chrono::milliseconds kPause{5'000};
  static StatusOr<std::unique_ptr<OutputFile>> Create(const OutputPlace& place,
                                                      std::chrono::milliseconds pause = kPause);

  // `text`: whole lines.
  void Append(std::string_view text);
  // Passes the buffered bytes to the kernel. After the first failure, which is returned once, all
  // bytes are lost until the pause is over; then writing is tried again. Lines that are in the file
  // are whole.
  Status Flush();

  // `told` is called with the number of bytes that reached the file, whenever the buffer was
  // emptied: these are its first lines, and all lines behind them are lost.
  void TellWritten(std::function<void(size_t bytes)> told) { told_ = std::move(told); }

  // Whether the path leads to another file or none, since this one was renamed or removed.
  bool IsMoved() const;
  // Whether the last write failed.
  bool failing() const { return failing_; }
  const std::string& path() const { return path_; }
  // Whether both are the same file, even if their paths differ.
  bool SameAs(const OutputFile& other) const {
    return device_ == other.device_ && inode_ == other.inode_;
  }

 private:
  OutputFile(std::string path, UniqueFd fd, const struct stat& info,
             std::chrono::milliseconds pause);
  void WriteBuffer();

  std::string path_;
  UniqueFd fd_;
  const dev_t device_;
  const ino_t inode_;
  const std::chrono::milliseconds pause_;
  std::string buffer_;
  std::function<void(size_t bytes)> told_ = [](size_t) {};
  bool failing_ = false;
  std::chrono::steady_clock::time_point retry_at_;
  Status failure_;  // not returned yet
};

}  // namespace resmgr::dump
