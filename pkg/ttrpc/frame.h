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

  // Takes bytes from the front of `bytes` up to the end of a frame. nullopt: all bytes were taken,
  // and the frame is not complete. Frames of unknown types are skipped.
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

// Bytes of the longest Request or Response envelope, as in containerd's ttrpc library. A Go server
// closes the connection over a longer one, so it is checked before anything is sent.
inline constexpr size_t kLongestMessage = size_t{4} << 20;
// Bytes of the longest frame of a multiplexer; a longer one is an error. The Go library splits at
// kLongestMessage and 10 bytes; up to NRI 0.6.1 it sent 16 MiB in one.
inline constexpr size_t kLongestTrunkFrame = (size_t{16} << 20) + 1024;
// Bytes that may wait for a peer that does not read, before the connection ends.
inline constexpr size_t kMostUnsent = size_t{12} << 20;
// Unanswered requests of one connection. More are refused with RESOURCE_EXHAUSTED.
inline constexpr size_t kMostRequests = 64;
// Kept metadata entries of a request; the rest is left out.
inline constexpr size_t kMostMetadata = 64;
// Bytes that are read from one connection before others get their turn.
inline constexpr size_t kReadAtOnce = size_t{64} << 10;

// Bytes that are read at once from a connection that was slowed down (Multiplexer::Slow).
inline constexpr size_t kReadWhenSlow = size_t{4} << 10;

// Four bytes in network byte order.
inline void PutUint32(uint32_t value, char* at) {
  at[0] = static_cast<char>(value >> 24);
  at[1] = static_cast<char>(value >> 16 & 0xff);
  at[2] = static_cast<char>(value >> 8 & 0xff);
  at[3] = static_cast<char>(value & 0xff);
}

inline uint32_t GetUint32(const char* at) {
  const auto byte = [at](int i) { return uint32_t{static_cast<uint8_t>(at[i])}; };
  return byte(0) << 24 | byte(1) << 16 | byte(2) << 8 | byte(3);
}

}  // namespace resmgr::ttrpc
