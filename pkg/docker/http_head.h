// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "pkg/base/status.h"

namespace resmgr::docker {

// Heads of HTTP/1.x messages (RFC 9112), read strictly: where a lenient reader and dockerd could
// see different messages in the same bytes, a second request can be hidden in the first, so what is
// not clear is refused. Nothing is decoded or changed; views are into the caller's bytes. Any
// thread.

// Of a head, with its last empty line.
inline constexpr size_t kMaxHead = size_t{64} * 1024;

// How the end of a message's body is found.
struct BodyFraming {
  enum class Kind : uint8_t { kNone, kLength, kChunked, kUntilClose };
  Kind kind = Kind::kNone;
  uint64_t length = 0;  // bytes, of kLength
};

struct RequestHead {
  std::string_view method;
  std::string_view target;  // as it was sent, percent-encoded
  bool upgrade = false;     // asks for another protocol on the connection
  BodyFraming body{};
};

struct ReplyHead {
  int status = 0;
  bool raw_stream = false;  // the content type of a connection that dockerd has taken over
  bool last = false;        // it says that no other follows on the connection
  BodyFraming body{};
};

// Finds the end of a head in bytes that arrive in pieces.
class HeadFinder {
 public:
  // `bytes`: all of the head so far. Its size with the empty line, or 0: there must be more.
  //   kInvalidArgument    a line that does not end with CR LF, or an empty first line
  //   kResourceExhausted  longer than kMaxHead
  StatusOr<size_t> Find(std::string_view bytes);
  // Another head follows.
  void Reset() { line_ = scanned_ = 0; }

 private:
  size_t line_ = 0;     // where the current line begins
  size_t scanned_ = 0;  // no LF before this that was not seen
};

// `head` as HeadFinder found it. kInvalidArgument: malformed or ambiguous; kUnimplemented: another
// version of HTTP, a transfer coding besides "chunked", or CONNECT.
StatusOr<RequestHead> ParseRequestHead(std::string_view head);
// `method` is that of the request.
StatusOr<ReplyHead> ParseReplyHead(std::string_view head, std::string_view method);

}  // namespace resmgr::docker
