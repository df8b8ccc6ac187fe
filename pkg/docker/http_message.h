// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "pkg/base/status.h"

namespace resmgr::docker {

// Heads of HTTP/1.x messages (RFC 9112), read strictly: if a lenient reader and dockerd saw
// different messages in the same bytes, a second request could be hidden in the first, so ambiguous
// heads are refused. Nothing is decoded or changed; views refer to the caller's bytes. Functions
// are thread-safe, classes thread-compatible.

// Limit of a head in bytes, with its last empty line.
inline constexpr size_t kMaxHead = size_t{64} * 1024;

// How the end of a message's body is found.
struct BodyFraming {
  enum class Kind : uint8_t { kNone, kLength, kChunked, kUntilClose };
  Kind kind = Kind::kNone;
  uint64_t length = 0;  // bytes, for kLength
};

struct RequestHead {
  std::string_view method;
  std::string_view target;  // as it was sent, percent-encoded
  bool upgrade = false;     // asks for another protocol on the connection
  BodyFraming body{};
};

struct ReplyHead {
  int status = 0;
  bool raw_stream = false;  // has the content type of a connection that dockerd has taken over
  bool last = false;        // announces that no other reply follows
  BodyFraming body{};
};

// Finds the end of a head in bytes that arrive in pieces.
class HeadFinder {
 public:
  // `bytes` is all of the head so far. Returns its size with the empty line, or 0 if it is
  // incomplete.
  // kInvalidArgument    a line that does not end with CR LF, or an empty first line
  // kResourceExhausted  longer than kMaxHead
  StatusOr<size_t> Find(std::string_view bytes);
  // Prepares for the next head.
  void Reset() { line_ = scanned_ = 0; }

 private:
  size_t line_ = 0;     // where the current line begins
  size_t scanned_ = 0;  // bytes before this have been searched for LF
};

// `head` has the extent that HeadFinder found. kInvalidArgument: malformed or ambiguous;
// kUnimplemented: another version of HTTP, a transfer coding besides "chunked", or CONNECT.
StatusOr<RequestHead> ParseRequestHead(std::string_view head);
// `method` is that of the reply's request.
StatusOr<ReplyHead> ParseReplyHead(std::string_view head, std::string_view method);

// Finds the end of a body in bytes that pass; it neither keeps nor changes them, so chunk sizes,
// extensions and trailers stay unchanged. Thread-compatible.
class BodyScanner {
 public:
  // Limits in bytes of one chunk's size line with its extension, and of all trailers.
  static constexpr size_t kMaxLine = 1024;
  static constexpr size_t kMaxTrailers = size_t{8} * 1024;

  void Start(const BodyFraming& framing);
  // Returns how many of the next bytes belong to the body: all, unless it ends within them.
  // kInvalidArgument: malformed chunks; Scan may not be called after that.
  StatusOr<size_t> Scan(std::string_view bytes);
  // Called when the connection has ended; false if the body is incomplete.
  bool End();
  bool done() const { return state_ == State::kDone; }

 private:
  enum class State : uint8_t {
    kDone,
    kLength,
    kUntilClose,
    kSize,       // in the digits of a chunk's size
    kExtension,  // in the extension after them
    kSizeLf,
    kData,
    kDataCr,
    kDataLf,
    kTrailerStart,  // at the beginning of a trailer, or of the last line
    kTrailer,
    kTrailerLf,
    kLastLf,
  };

  Status Take(char c);
  Status TakeOfSize(char c);
  Status TakeOfTrailer(char c);
  Status Expect(char c, char expected, State next);

  State state_ = State::kDone;
  uint64_t left_ = 0;  // bytes of the body or of the chunk
  size_t digits_ = 0;  // read digits of a chunk's size
  size_t line_ = 0;    // read bytes of a chunk's line, or of the trailers
};

}  // namespace resmgr::docker
