// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "pkg/base/status.h"
#include "pkg/sys/unique_fd.h"
#include "pkg/sys/unix_socket.h"

// HTTP/2 by hand, for bytes that no proper peer would send.
namespace resmgr::test {

inline constexpr char kHttp2Preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

// A frame with any header. Types: 0 DATA, 1 HEADERS, 3 RST_STREAM, 4 SETTINGS, 6 PING,
// 8 WINDOW_UPDATE. Flags: 1 end of the stream, or an acknowledgement; 4 end of the header block.
std::string Frame(uint32_t length, uint8_t type, uint8_t flags, uint32_t stream,
                  const std::string& payload);
std::string Frame(uint8_t type, uint8_t flags, uint32_t stream, const std::string& payload);

// Four bytes, big-endian.
std::string Number(uint32_t value);
// A frame with this one setting. 4: the window of each stream.
std::string Settings(uint8_t setting, uint32_t value);

// Header fields, each spelled out and never put into a table. Names and values of up to 126 bytes.
std::string Fields(const std::vector<std::pair<std::string, std::string>>& fields);
// The header fields of a gRPC request to this path.
std::vector<std::pair<std::string, std::string>> RequestFields(const std::string& path);

// The message with gRPC's prefix in DATA frames of up to 16 KiB; the last one ends the stream.
std::string Body(uint32_t stream, std::string_view message, bool compressed = false);
// A request of one message. Its HEADERS frame alone, and all of it.
std::string RequestHeaders(uint32_t stream, const std::string& path,
                           const std::vector<std::pair<std::string, std::string>>& more = {});
std::string Request(uint32_t stream, const std::string& path, const std::string& message);
// A whole answer with this message and the status OK.
std::string Answer(uint32_t stream, std::string_view message);

// A runtime whose answers are frames by hand: for one that is slow, or breaks the protocol. Each
// connection has a thread of its own. It ignores its peer's windows.
class RawRuntime {
 public:
  struct Script {
    // The bytes that it sends when a request's header fields are here; "": no answer. By path.
    std::function<std::string(uint32_t stream, const std::string& path)> answer;
    // The first frames of each connection; SETTINGS must be among them.
    std::string greeting;
    // DATA is answered with windows as large as it was.
    bool opens_windows = true;
  };

  static StatusOr<std::unique_ptr<RawRuntime>> Start(const std::string& socket, Script script);
  ~RawRuntime();

  // Requests for this path so far.
  int Requests(const std::string& path) const;

 private:
  class Peer;
  RawRuntime(ListeningSocket listener, Script script);
  void Accept();

  ListeningSocket listener_;
  const Script script_;
  std::atomic<bool> stop_{false};
  mutable std::mutex mutex_;
  std::vector<std::string> paths_;
  std::vector<std::thread> peers_;
  std::thread acceptor_;
};

}  // namespace resmgr::test
