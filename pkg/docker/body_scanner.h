// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "pkg/base/status.h"
#include "pkg/docker/http_head.h"

namespace resmgr::docker {

// Finds the end of a body in bytes that pass, which it neither keeps nor changes: the sizes of
// chunks, their extensions and trailers stay as they are. Thread-compatible.
class BodyScanner {
 public:
  // Of one chunk's size with its extension, and of all trailers.
  static constexpr size_t kMaxLine = 1024;
  static constexpr size_t kMaxTrailers = size_t{8} * 1024;

  void Start(const BodyFraming& framing);
  // How many of these, which follow those before, are of the body: all, unless it ends.
  // kInvalidArgument: malformed chunks. Not to be called after an error.
  StatusOr<size_t> Scan(std::string_view bytes);
  // The connection ended. False: in the midst of the body.
  bool End();
  bool done() const { return state_ == State::kDone; }

 private:
  enum class State : uint8_t {
    kDone,
    kLength,
    kUntilClose,
    kSize,       // in the digits of a chunk's size
    kExtension,  // behind them
    kSizeLf,
    kData,
    kDataCr,
    kDataLf,
    kTrailerStart,  // at the begin of a trailer, or of the last line
    kTrailer,
    kTrailerLf,
    kLastLf,
  };

  Status Take(char c);
  Status TakeOfSize(char c);
  Status TakeOfTrailer(char c);
  Status Expect(char c, char expected, State next);

  State state_ = State::kDone;
  uint64_t left_ = 0;  // bytes: of the body or of the chunk
  size_t digits_ = 0;  // of a chunk's size
  size_t line_ = 0;    // bytes of a chunk's line, or of the trailers
};

}  // namespace resmgr::docker
