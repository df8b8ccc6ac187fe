// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "pkg/base/status.h"
#include "pkg/docker/http_head.h"

namespace resmgr::docker {

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
  // Tells that the connection ended; false if the body is incomplete.
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
