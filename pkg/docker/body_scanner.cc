// SPDX-License-Identifier: Apache-2.0
#include "pkg/docker/body_scanner.h"

#include <algorithm>

#include "pkg/base/percent.h"

namespace resmgr::docker {
namespace {

// Digits of a chunk's size: enough for any size, too few to overflow.
constexpr size_t kMostDigits = 15;

bool IsText(char c) {
  return c == '\t' || (static_cast<unsigned char>(c) >= ' ' && c != '\x7f');
}

}  // namespace

void BodyScanner::Start(const BodyFraming& framing) {
  left_ = framing.length;
  digits_ = line_ = 0;
  switch (framing.kind) {
    case BodyFraming::Kind::kNone:
      state_ = State::kDone;
      return;
    case BodyFraming::Kind::kLength:
      state_ = left_ == 0 ? State::kDone : State::kLength;
      return;
    case BodyFraming::Kind::kChunked:
      left_ = 0;
      state_ = State::kSize;
      return;
    case BodyFraming::Kind::kUntilClose:
      state_ = State::kUntilClose;
      return;
  }
}

StatusOr<size_t> BodyScanner::Scan(std::string_view bytes) {
  size_t at = 0;
  while (at < bytes.size() && state_ != State::kDone) {
    if (state_ == State::kUntilClose) return bytes.size();
    if (state_ == State::kLength || state_ == State::kData) {
      const uint64_t step = std::min<uint64_t>(left_, bytes.size() - at);
      at += step;
      left_ -= step;
      if (left_ == 0) state_ = state_ == State::kLength ? State::kDone : State::kDataCr;
      continue;
    }
    RESMGR_RETURN_IF_ERROR(Take(bytes[at]));
    ++at;
  }
  return at;
}

bool BodyScanner::End() {
  if (state_ == State::kUntilClose) state_ = State::kDone;
  return done();
}

Status BodyScanner::Expect(char c, char expected, State next) {
  if (c != expected) return InvalidArgument("a malformed chunk");
  state_ = next;
  return OkStatus();
}

Status BodyScanner::Take(char c) {
  switch (state_) {
    case State::kSize:
    case State::kExtension:
      return TakeOfSize(c);
    case State::kSizeLf:
      line_ = digits_ = 0;
      return Expect(c, '\n', left_ == 0 ? State::kTrailerStart : State::kData);
    case State::kDataCr:
      return Expect(c, '\r', State::kDataLf);
    case State::kDataLf:
      return Expect(c, '\n', State::kSize);
    case State::kTrailerStart:
    case State::kTrailer:
      return TakeOfTrailer(c);
    case State::kTrailerLf:
      return Expect(c, '\n', State::kTrailerStart);
    case State::kLastLf:
      return Expect(c, '\n', State::kDone);
    case State::kDone:
    case State::kLength:
    case State::kData:
    case State::kUntilClose:
      break;
  }
  return Internal("no byte of a body is expected");
}

Status BodyScanner::TakeOfSize(char c) {
  if (++line_ > kMaxLine) return InvalidArgument("the line of a chunk's size is too long");
  if (c == '\r') return Expect(digits_ == 0 ? '\0' : c, '\r', State::kSizeLf);
  if (state_ == State::kExtension) {
    return IsText(c) ? OkStatus() : InvalidArgument("a malformed extension of a chunk");
  }
  if (c == ';' && digits_ > 0) {
    state_ = State::kExtension;
    return OkStatus();
  }
  const int digit = HexDigit(c);
  if (digit < 0 || ++digits_ > kMostDigits) return InvalidArgument("a malformed size of a chunk");
  left_ = left_ * 16 + static_cast<uint64_t>(digit);
  return OkStatus();
}

Status BodyScanner::TakeOfTrailer(char c) {
  if (++line_ > kMaxTrailers) return InvalidArgument("the trailers are too long");
  if (c == '\r') {
    state_ = state_ == State::kTrailerStart ? State::kLastLf : State::kTrailerLf;
    return OkStatus();
  }
  // A line that begins with white space would continue the former line.
  if (!IsText(c) || (state_ == State::kTrailerStart && (c == ' ' || c == '\t'))) {
    return InvalidArgument("a malformed trailer");
  }
  state_ = State::kTrailer;
  return OkStatus();
}

}  // namespace resmgr::docker
