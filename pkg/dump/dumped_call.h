// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace resmgr::dump {

// Names one call to the dumper. The views need to last only for the call that they are handed to.
struct CallRef {
  uint64_t id = 0;        // never used twice in the life of a dumper
  std::string_view path;  // "/runtime.v1.RuntimeService/Version"
  bool intercepted = false;
  std::chrono::steady_clock::time_point start{};
  std::chrono::system_clock::time_point wall_start{};
};

// One message as it was collected: protobuf bytes without gRPC's prefix of five.
struct Payload {
  std::string bytes;
  // How long the message was on the wire. More than bytes.size() when the relay kept only its
  // beginning.
  uint64_t total_size = 0;
  // The bytes are compressed by the peer: they are counted, not shown, unless the dumper can
  // decompress them (Dumper::Options). `encoding` is the header grpc-encoding.
  bool compressed = false;
  std::string encoding{};

  Payload() = default;
  // A message that was kept whole.
  explicit Payload(std::string message) : bytes(std::move(message)), total_size(bytes.size()) {}
  Payload(std::string beginning, uint64_t whole_size)
      : bytes(std::move(beginning)), total_size(whole_size) {}

  bool truncated() const { return bytes.size() < total_size; }
};

// What the dumper wants to be told about the calls of one method.
enum class Interest {
  kNone,      // nothing
  kCalls,     // OnRequest (with an empty payload) and OnEnd
  kMessages,  // everything
};

}  // namespace resmgr::dump
