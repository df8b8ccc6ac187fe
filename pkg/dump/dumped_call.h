// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace resmgr::dump {

// Identifies one call for the dumper. The views must be valid only during the call of the dumper's
// function.
struct CallRef {
  uint64_t id = 0;        // unique in the life of a dumper
  std::string_view path;  // "/runtime.v1.RuntimeService/Version"
  bool intercepted = false;
  std::chrono::steady_clock::time_point start{};
  std::chrono::system_clock::time_point wall_start{};
};

// One collected message: protobuf bytes without gRPC's prefix of five bytes.
struct Payload {
  std::string bytes;
  // Length in bytes of the message as it was sent. It is more than bytes.size() if the relay kept
  // only the beginning.
  uint64_t total_size = 0;
  // The bytes are compressed. Only their number is shown, unless the dumper can decompress them
  // (Dumper::Options). `encoding` is the header grpc-encoding.
  bool compressed = false;
  std::string encoding{};

  Payload() = default;
  // Takes a whole message.
  explicit Payload(std::string message) : bytes(std::move(message)), total_size(bytes.size()) {}
  Payload(std::string beginning, uint64_t whole_size)
      : bytes(std::move(beginning)), total_size(whole_size) {}
  // A message of the Docker API.
  static Payload Json(std::string text) {
    Payload payload(std::move(text));
    payload.encoding = "json";
    return payload;
  }

  bool truncated() const { return bytes.size() < total_size; }
};

// The part of a method's calls that the dumper needs.
enum class Interest {
  kNone,      // neither events nor messages
  kCalls,     // OnRequest (with an empty payload) and OnEnd
  kMessages,  // everything
};

}  // namespace resmgr::dump
