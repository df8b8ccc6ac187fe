// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include <endian.h>

namespace resmgr::h2 {

// Frames of HTTP/2 (RFC 9113 sections 4 and 6).
enum class FrameType : uint8_t {
  kData = 0,
  kHeaders = 1,
  kPriority = 2,
  kRstStream = 3,
  kSettings = 4,
  kPushPromise = 5,
  kPing = 6,
  kGoAway = 7,
  kWindowUpdate = 8,
  kContinuation = 9,
};

inline constexpr uint8_t kFlagEndStream = 0x1;
inline constexpr uint8_t kFlagAck = 0x1;
inline constexpr uint8_t kFlagEndHeaders = 0x4;
inline constexpr uint8_t kFlagPadded = 0x8;
inline constexpr uint8_t kFlagPriority = 0x20;

enum class Setting : uint16_t {
  kHeaderTableSize = 1,
  kEnablePush = 2,
  kMaxConcurrentStreams = 3,
  kInitialWindowSize = 4,
  kMaxFrameSize = 5,
  kMaxHeaderListSize = 6,
};

inline constexpr size_t kFrameHeaderSize = 9;
inline constexpr size_t kFlagsAt = 4;  // offset of the flags in a frame's header
inline constexpr int64_t kMaxWindow = 0x7fffffff;
inline constexpr int32_t kDefaultWindow = 65535;
inline constexpr uint32_t kDefaultMaxFrameSize = 16384;
// The first bytes of a client.
inline constexpr std::string_view kPreface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

struct FrameHeader {
  uint32_t length = 0;  // bytes of the payload
  FrameType type = FrameType::kData;
  uint8_t flags = 0;
  int32_t stream = 0;

  bool Has(uint8_t flag) const { return (flags & flag) != 0; }
};

inline const uint8_t* Octets(std::string_view text) {
  return reinterpret_cast<const uint8_t*>(text.data());
}

// Numbers are big-endian.
inline uint32_t ReadUint32(const uint8_t* bytes) {
  uint32_t value = 0;
  std::memcpy(&value, bytes, sizeof(value));
  return be32toh(value);
}

inline void WriteUint32(uint32_t value, uint8_t* bytes) {
  value = htobe32(value);
  std::memcpy(bytes, &value, sizeof(value));
}

inline FrameHeader ReadFrameHeader(const uint8_t* bytes) {
  return {.length = ReadUint32(bytes) >> 8,
          .type = static_cast<FrameType>(bytes[3]),
          .flags = bytes[kFlagsAt],
          .stream = static_cast<int32_t>(ReadUint32(bytes + 5) & 0x7fffffff)};
}

// Writes kFrameHeaderSize bytes.
inline void WriteFrameHeader(const FrameHeader& header, uint8_t* bytes) {
  WriteUint32(header.length << 8 | static_cast<uint8_t>(header.type), bytes);
  bytes[kFlagsAt] = header.flags;
  WriteUint32(static_cast<uint32_t>(header.stream), bytes + 5);
}

}  // namespace resmgr::h2
