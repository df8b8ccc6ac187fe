// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "pkg/base/status.h"
#include "pkg/sys/unique_fd.h"

namespace resmgr::test {

// One connection on which a test sends whatever bytes it wants. Thread-compatible.
class RawHttp {
 public:
  static StatusOr<RawHttp> Connect(const std::filesystem::path& socket);

  // Sends `text` in pieces of this many bytes with a pause behind each, or at once with 0. Bytes
  // that a closed peer does not take are lost.
  void Send(std::string_view bytes, size_t piece = 0, std::chrono::milliseconds pause = {});
  void EndSending();
  // The bytes until the peer closes or is silent for this long. `closed()` tells which.
  std::string ReadAll(std::chrono::milliseconds silence);
  bool closed() const { return closed_; }

 private:
  explicit RawHttp(UniqueFd fd) : fd_(std::move(fd)) {}

  UniqueFd fd_;
  bool closed_ = false;
};

}  // namespace resmgr::test
