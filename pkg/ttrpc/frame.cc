// SPDX-License-Identifier: Apache-2.0
#include "pkg/ttrpc/frame.h"

#include <algorithm>
#include <utility>

namespace resmgr::ttrpc {

std::array<char, FrameHeader::kSize> Encode(const FrameHeader& header) {
  std::array<char, FrameHeader::kSize> bytes{};
  PutUint32(header.length, bytes.data());
  PutUint32(header.stream, bytes.data() + 4);
  bytes[8] = static_cast<char>(header.type);
  bytes[9] = static_cast<char>(header.flags);
  return bytes;
}

FrameHeader DecodeHeader(std::string_view bytes) {
  return {.length = GetUint32(bytes.data()),
          .stream = GetUint32(bytes.data() + 4),
          .type = static_cast<uint8_t>(bytes[8]),
          .flags = static_cast<uint8_t>(bytes[9])};
}

std::optional<Frame> FrameReader::Next(std::string_view& bytes) {
  for (;;) {
    if (header_read_ < FrameHeader::kSize && !ReadHeader(bytes)) return std::nullopt;
    if (!ReadBody(bytes)) return std::nullopt;
    header_read_ = 0;
    body_read_ = 0;
    Frame whole = std::exchange(frame_, {});
    if (whole.header.Is(FrameType::kRequest) || whole.header.Is(FrameType::kResponse)) return whole;
  }
}

bool FrameReader::ReadHeader(std::string_view& bytes) {
  const size_t part = std::min(bytes.size(), FrameHeader::kSize - header_read_);
  bytes.copy(header_bytes_.data() + header_read_, part);
  bytes.remove_prefix(part);
  header_read_ += part;
  if (header_read_ < FrameHeader::kSize) return false;
  frame_.header = DecodeHeader({header_bytes_.data(), header_bytes_.size()});
  const size_t length = frame_.header.length;
  if (length > 0 && length <= kLongestMessage) frame_.share = budget_.Take(length);
  frame_.skipped = length > 0 && !frame_.share;
  return true;
}

bool FrameReader::ReadBody(std::string_view& bytes) {
  const size_t part = std::min(bytes.size(), frame_.header.length - body_read_);
  if (!frame_.skipped) {
    // The whole length is reserved, since the budget counts it already; the kernel gives no memory
    // for bytes before they arrive.
    if (frame_.body.empty() && part > 0) frame_.body.reserve(frame_.header.length);
    frame_.body.append(bytes.substr(0, part));
  }
  bytes.remove_prefix(part);
  body_read_ += part;
  return body_read_ == frame_.header.length;
}

}  // namespace resmgr::ttrpc
