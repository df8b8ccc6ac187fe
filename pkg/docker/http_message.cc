// SPDX-License-Identifier: Apache-2.0
#include "pkg/docker/http_message.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "pkg/base/characters.h"
#include "pkg/base/parse.h"

namespace resmgr::docker {
namespace {

constexpr std::string_view kEndOfLine = "\r\n";
// More digits than any body's length needs, but few enough that sums do not overflow.
constexpr size_t kMostLengthDigits = 18;

bool IsTokenChar(char c) {
  const char lower = LowerCase(c);
  return IsDigit(c) || (lower >= 'a' && lower <= 'z') ||
         std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos;
}

bool IsToken(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, IsTokenChar);
}

// Whether the character may be in a target: visible ASCII.
bool IsTargetChar(char c) {
  return c > ' ' && c < '\x7f';
}

bool IsValueChar(char c) {
  return c == '\t' || (static_cast<unsigned char>(c) >= ' ' && c != '\x7f');
}

// Header fields have no other white space.
std::string_view TrimBlanks(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t") - begin + 1);
}

// Removes and returns the first line of `head`, without its end. Each line of `head` has an end.
std::string_view TakeLine(std::string_view& head) {
  const size_t end = head.find(kEndOfLine);
  const std::string_view line = head.substr(0, end);
  head.remove_prefix(std::min(head.size(), line.size() + kEndOfLine.size()));
  return line;
}

struct Fields {
  std::optional<uint64_t> length;
  bool chunked = false;
  bool connection_upgrade = false;
  bool connection_close = false;
  bool connection_keep_alive = false;
  bool upgrade = false;
  std::string_view content_type;
};

Status ReadLength(std::string_view value, Fields& fields) {
  if (fields.length) return InvalidArgument("two Content-Length fields");
  if (value.size() <= kMostLengthDigits) fields.length = ParseUint(value);
  return fields.length ? OkStatus() : InvalidArgument("Content-Length is not a number");
}

Status ReadField(std::string_view name, std::string_view value, Fields& fields) {
  if (EqualsIgnoreCase(name, "content-length")) return ReadLength(value, fields);
  if (EqualsIgnoreCase(name, "transfer-encoding")) {
    if (fields.chunked) return InvalidArgument("two Transfer-Encoding fields");
    if (!EqualsIgnoreCase(value, "chunked"))
      return Unimplemented("a Transfer-Encoding besides chunked");
    fields.chunked = true;
  } else if (EqualsIgnoreCase(name, "connection")) {
    for (const std::string_view each : Split(value, ',')) {
      const std::string_view word = TrimBlanks(each);
      fields.connection_upgrade |= EqualsIgnoreCase(word, "upgrade");
      fields.connection_close |= EqualsIgnoreCase(word, "close");
      fields.connection_keep_alive |= EqualsIgnoreCase(word, "keep-alive");
    }
  } else if (EqualsIgnoreCase(name, "upgrade")) {
    fields.upgrade = true;
  } else if (EqualsIgnoreCase(name, "content-type")) {
    fields.content_type = value;
  }
  return OkStatus();
}

StatusOr<Fields> ReadFields(std::string_view lines) {
  Fields fields;
  while (true) {
    const std::string_view line = TakeLine(lines);
    if (line.empty()) break;
    if (line.front() == ' ' || line.front() == '\t') {
      return InvalidArgument("a header field continues in a second line");
    }
    const size_t colon = line.find(':');
    if (colon == std::string_view::npos || !IsToken(line.substr(0, colon))) {
      return InvalidArgument("a malformed name of a header field");
    }
    const std::string_view value = TrimBlanks(line.substr(colon + 1));
    if (!std::ranges::all_of(value, IsValueChar)) {
      return InvalidArgument("a control character in a header field");
    }
    RESMGR_RETURN_IF_ERROR(ReadField(line.substr(0, colon), value, fields));
  }
  if (fields.chunked && fields.length) {
    return InvalidArgument("both Content-Length and Transfer-Encoding");
  }
  return fields;
}

// Returns true for HTTP/1.0.
StatusOr<bool> ReadVersion(std::string_view version) {
  if (version == "HTTP/1.1") return false;
  if (version == "HTTP/1.0") return true;
  if (version.substr(0, 5) == "HTTP/") return Unimplemented("only HTTP/1.0 and 1.1 are served");
  return InvalidArgument("a malformed first line");
}

BodyFraming FramingOf(const Fields& fields, BodyFraming::Kind without) {
  if (fields.chunked) return {.kind = BodyFraming::Kind::kChunked};
  if (!fields.length) return {.kind = without};
  if (*fields.length == 0) return {};
  return {.kind = BodyFraming::Kind::kLength, .length = *fields.length};
}

// Digits of a chunk's size: enough for any size, too few to overflow.
constexpr size_t kMostDigits = 15;

}  // namespace

StatusOr<size_t> HeadFinder::Find(std::string_view bytes) {
  const std::string_view head = bytes.substr(0, kMaxHead);
  while (true) {
    const size_t end = head.find('\n', scanned_);
    if (end == std::string_view::npos) break;
    scanned_ = end + 1;
    if (end == line_ || head[end - 1] != '\r') {
      return InvalidArgument("a line of the head does not end with CR LF");
    }
    const bool empty = end == line_ + 1;
    if (empty && line_ == 0) return InvalidArgument("an empty first line");
    if (empty) return scanned_;
    line_ = scanned_;
  }
  scanned_ = head.size();
  if (head.size() == kMaxHead) {
    return ResourceExhausted("the header fields are longer than {} bytes", kMaxHead);
  }
  return size_t{0};
}

StatusOr<RequestHead> ParseRequestHead(std::string_view head) {
  const std::string_view line = TakeLine(head);
  const size_t first = line.find(' ');
  const size_t last = line.rfind(' ');
  if (first == std::string_view::npos || last == first) {
    return InvalidArgument("a malformed request line");
  }
  RequestHead request{.method = line.substr(0, first),
                      .target = line.substr(first + 1, last - first - 1)};
  if (!IsToken(request.method) || request.target.empty() ||
      !std::ranges::all_of(request.target, IsTargetChar)) {
    return InvalidArgument("a malformed request line");
  }
  if (request.method == "CONNECT") return Unimplemented("CONNECT is not served");
  RESMGR_ASSIGN_OR_RETURN(const bool old, ReadVersion(line.substr(last + 1)));
  RESMGR_ASSIGN_OR_RETURN(const Fields fields, ReadFields(head));
  if (old && fields.chunked) return InvalidArgument("a Transfer-Encoding in HTTP/1.0");
  request.upgrade = !old && fields.upgrade && fields.connection_upgrade;
  request.body = FramingOf(fields, BodyFraming::Kind::kNone);
  return request;
}

StatusOr<ReplyHead> ParseReplyHead(std::string_view head, std::string_view method) {
  const std::string_view line = TakeLine(head);
  RESMGR_ASSIGN_OR_RETURN(const bool old, ReadVersion(line.substr(0, line.find(' '))));
  // "HTTP/1.1 200", with or without " OK".
  const std::string_view code = line.size() < 12 ? std::string_view() : line.substr(9, 3);
  if (code.empty() || !std::ranges::all_of(code, IsDigit) || code.front() == '0' ||
      (line.size() > 12 && line[12] != ' ') || !std::ranges::all_of(line, IsValueChar)) {
    return InvalidArgument("a malformed status line");
  }
  ReplyHead reply{.status = (code[0] - '0') * 100 + (code[1] - '0') * 10 + (code[2] - '0')};
  RESMGR_ASSIGN_OR_RETURN(const Fields fields, ReadFields(head));
  reply.raw_stream =
      EqualsIgnoreCase(fields.content_type, "application/vnd.docker.raw-stream") ||
      EqualsIgnoreCase(fields.content_type, "application/vnd.docker.multiplexed-stream");
  reply.last = fields.connection_close || (old && !fields.connection_keep_alive);
  const bool bodiless =
      method == "HEAD" || reply.status < 200 || reply.status == 204 || reply.status == 304;
  if (!bodiless) reply.body = FramingOf(fields, BodyFraming::Kind::kUntilClose);
  return reply;
}

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
    return IsValueChar(c) ? OkStatus() : InvalidArgument("a malformed extension of a chunk");
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
  if (!IsValueChar(c) || (state_ == State::kTrailerStart && (c == ' ' || c == '\t'))) {
    return InvalidArgument("a malformed trailer");
  }
  state_ = State::kTrailer;
  return OkStatus();
}

}  // namespace resmgr::docker
