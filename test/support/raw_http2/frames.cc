// SPDX-License-Identifier: Apache-2.0
#include "test/support/raw_http2/frames.h"

#include <algorithm>

#include "test/support/grpc_framing.h"

namespace resmgr::test {

std::string Number(uint32_t value) {
  std::string bytes;
  for (const int shift : {24, 16, 8, 0})
    bytes += static_cast<char>(value >> shift & 0xff);
  return bytes;
}

std::string Frame(uint32_t length, uint8_t type, uint8_t flags, uint32_t stream,
                  const std::string& payload) {
  std::string frame = Number(length).substr(1);
  frame += static_cast<char>(type);
  frame += static_cast<char>(flags);
  return frame + Number(stream) + payload;
}

std::string Frame(uint8_t type, uint8_t flags, uint32_t stream, const std::string& payload) {
  return Frame(static_cast<uint32_t>(payload.size()), type, flags, stream, payload);
}

std::string Settings(uint8_t setting, uint32_t value) {
  return Frame(4, 0, 0, std::string(1, '\0') + static_cast<char>(setting) + Number(value));
}

std::string Fields(const std::vector<std::pair<std::string, std::string>>& fields) {
  std::string block;
  for (const auto& [name, value] : fields) {
    block += '\0';
    for (const std::string& text : {name, value}) {
      block += static_cast<char>(text.size());
      block += text;
    }
  }
  return block;
}

std::vector<std::pair<std::string, std::string>> RequestFields(const std::string& path) {
  return {{":method", "POST"},
          {":scheme", "http"},
          {":path", path},
          {":authority", "localhost"},
          {"content-type", "application/grpc"},
          {"te", "trailers"}};
}

std::string Body(uint32_t stream, std::string_view message, bool compressed) {
  constexpr size_t kPiece = 16384;
  const std::string body = Framed(std::string(message), compressed);
  std::string frames;
  for (size_t at = 0; at < body.size(); at += kPiece) {
    const bool last = at + kPiece >= body.size();
    frames += Frame(0, last ? 1 : 0, stream, body.substr(at, kPiece));
  }
  return frames;
}

std::string RequestHeaders(uint32_t stream, const std::string& path,
                           const std::vector<std::pair<std::string, std::string>>& more) {
  return Frame(1, 4, stream, Fields(RequestFields(path)) + Fields(more));
}

std::string Request(uint32_t stream, const std::string& path, const std::string& message) {
  return RequestHeaders(stream, path) + Body(stream, message);
}

std::string Answer(uint32_t stream, std::string_view message) {
  constexpr size_t kPiece = 16384;
  const std::string body = Framed(std::string(message));
  std::string frames =
      Frame(1, 4, stream, Fields({{":status", "200"}, {"content-type", "application/grpc"}}));
  for (size_t at = 0; at < body.size(); at += kPiece)
    frames += Frame(0, 0, stream, body.substr(at, kPiece));
  return frames + Frame(1, 5, stream, Fields({{"grpc-status", "0"}}));
}

}  // namespace resmgr::test
