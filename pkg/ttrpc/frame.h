// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "pkg/ttrpc/memory_budget.h"

namespace resmgr::ttrpc {

// ttrpc's frames (containerd/ttrpc, PROTOCOL.md): a header of ten bytes in network byte order, and
// an envelope (pkg/ttrpc/envelope.h).

enum class FrameType : uint8_t { kRequest = 1, kResponse = 2, kData = 3 };

struct FrameHeader {
  static constexpr size_t kSize = 10;

  uint32_t length = 0;  // bytes after the header
  uint32_t stream = 0;  // odd; ascending within a connection
  uint8_t type = 0;     // a FrameType; others are to be skipped
  uint8_t flags = 0;    // 0 for calls with one request and one response

  bool Is(FrameType wanted) const { return type == static_cast<uint8_t>(wanted); }
  friend bool operator==(const FrameHeader&, const FrameHeader&) = default;
};

std::array<char, FrameHeader::kSize> Encode(const FrameHeader& header);
// Decodes exactly FrameHeader::kSize bytes.
FrameHeader DecodeHeader(std::string_view bytes);

struct Frame {
  FrameHeader header;
  std::string body;
  // The body was longer than kLongestMessage, or the budget had no room for it, so it was skipped.
  bool skipped = false;
  MemoryBudget::Share share{};  // the body's share
};

// Cuts a stream of bytes into frames. Holds at most one body. Loop's thread only.
class FrameReader {
 public:
  // The budget outlives the reader.
  explicit FrameReader(MemoryBudget& budget) : budget_(budget) {}

  // Takes bytes from the front of `bytes` up to the end of a frame; nullopt: all bytes were taken,
  // and more are needed. Frames of unknown types are skipped.
  std::optional<Frame> Next(std::string_view& bytes);

 private:
  bool ReadHeader(std::string_view& bytes);
  bool ReadBody(std::string_view& bytes);

  MemoryBudget& budget_;
  std::array<char, FrameHeader::kSize> header_bytes_{};
  size_t header_read_ = 0;
  size_t body_read_ = 0;
  Frame frame_;
};

}  // namespace resmgr::ttrpc
