// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <string_view>

#include <sys/types.h>

#include "pkg/base/status.h"
#include "pkg/sys/unique_fd.h"

namespace resmgr::dump {

// Which file is to be written. A path that comes from outside this node (an agent delivers it) must
// not reach any file that the daemon, which is root, can write: such a file must lie directly in
// `directory`. Where that is empty, any path will do.
struct OutputPlace {
  std::string path{};       // empty: no file
  std::string directory{};  // made with mode 0700 when it is not there; those above it are not

  friend bool operator==(const OutputPlace&, const OutputPlace&) = default;
};

// InvalidArgument when the path does not lie directly in the place's directory, or is longer than a
// path can be. Looks at the names alone.
Status CheckPlace(const OutputPlace& place);

// Whether OutputFile::Create would succeed now, without making or changing anything.
// InvalidArgument says why not. Blocks on the disk.
Status ProbePlace(const OutputPlace& place);

// A file that is written from its beginning, for its owner's eyes only (mode 0600). Buffers up to
// 64 KiB. Used by one thread at a time. Everything may block on the disk.
class OutputFile {
 public:
  // Makes the file, or empties the one that is there. That must be a regular file of this process's
  // user that has no other name: neither a symbolic link, a pipe, a device nor another user's file
  // is touched. InvalidArgument says what is in the way.
  static StatusOr<std::unique_ptr<OutputFile>> Create(const OutputPlace& place);

  void Append(std::string_view text);
  // Hands what is buffered to the kernel. The first failure is returned once; what is written
  // within the next kPause is lost, then it is tried again.
  Status Flush();

  const std::string& path() const { return path_; }
  // Both are one file, whatever their paths are.
  bool SameAs(const OutputFile& other) const {
    return device_ == other.device_ && inode_ == other.inode_;
  }

  static constexpr std::chrono::seconds kPause{5};

 private:
  OutputFile(std::string path, UniqueFd fd, dev_t device, ino_t inode);
  void WriteBuffer();

  std::string path_;
  UniqueFd fd_;
  const dev_t device_;
  const ino_t inode_;
  std::string buffer_;
  bool failing_ = false;
  std::chrono::steady_clock::time_point retry_at_;
  Status failure_;  // not yet returned
};

}  // namespace resmgr::dump
