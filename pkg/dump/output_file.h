// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "pkg/base/status.h"
#include "pkg/sys/unique_fd.h"

namespace resmgr::dump {

// A file that is written from its beginning, for its owner's eyes only (mode 0600). Buffers up to
// 64 KiB. Used by one thread at a time.
class OutputFile {
 public:
  // Empties the file if it exists. Never hangs on a pipe that nobody reads: that is an error.
  static StatusOr<std::unique_ptr<OutputFile>> Create(const std::string& path);

  void Append(std::string_view text);
  // Hands what is buffered to the kernel. The first failure is returned once; from then on the
  // file takes nothing any more, and everything succeeds.
  Status Flush();

  const std::string& path() const { return path_; }

 private:
  OutputFile(std::string path, UniqueFd fd);

  std::string path_;
  UniqueFd fd_;
  std::string buffer_;
  Status failure_;
};

}  // namespace resmgr::dump
