// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "pkg/base/status.h"
#include "pkg/sys/unique_fd.h"

namespace resmgr::bench {

// One connection to an engine; requests and replies one after the other, and as little work of its
// own as possible. Replies have a Content-Length. Thread-compatible.
class HttpClient {
 public:
  explicit HttpClient(std::string socket) : socket_(std::move(socket)) {}

  // Connects first if necessary. kUnavailable: the connection fails, or no whole reply of status
  // 2xx comes.
  Status Call(std::string_view request);
  void Disconnect() { fd_.Reset(); }

 private:
  Status ReadReply();

  const std::string socket_;
  UniqueFd fd_;
  std::string reply_;
};

}  // namespace resmgr::bench
