// SPDX-License-Identifier: Apache-2.0
#include "pkg/ttrpc/envelope.h"

#include <algorithm>
#include <cstdint>

#include "pkg/base/parse.h"
#include "pkg/base/wire.h"
#include "pkg/ttrpc/frame.h"

namespace resmgr::ttrpc {
namespace {

// Fields of Request.
constexpr uint32_t kService = 1;
constexpr uint32_t kMethod = 2;
constexpr uint32_t kPayload = 3;
constexpr uint32_t kTimeoutNano = 4;
constexpr uint32_t kMetadata = 5;
// Fields of KeyValue.
constexpr uint32_t kKey = 1;
constexpr uint32_t kValue = 2;
// Fields of Response.
constexpr uint32_t kStatus = 1;
constexpr uint32_t kResponsePayload = 2;
// Fields of google.rpc.Status.
constexpr uint32_t kCode = 1;
constexpr uint32_t kMessage = 2;

// Bytes of a peer's error text that are kept for logs and users.
constexpr size_t kLongestMessageText = 1024;
constexpr uint64_t kHighestCode = 16;

bool DecodePair(std::string_view bytes, std::pair<std::string_view, std::string_view>& pair) {
  WireReader reader(bytes);
  while (reader.Next()) {
    if (reader.field() == kKey) pair.first = reader.bytes();
    if (reader.field() == kValue) pair.second = reader.bytes();
  }
  return !reader.failed();
}

// The peer's error. gRPC has no code above 16, and code 0 is not an error.
Status DecodeStatus(std::string_view bytes) {
  uint64_t code = 0;
  std::string_view message;
  WireReader reader(bytes);
  while (reader.Next()) {
    if (reader.field() == kCode) code = reader.number();
    if (reader.field() == kMessage) message = reader.bytes();
  }
  if (reader.failed()) return Internal("the peer's status is not protobuf");
  if (code == 0) return OkStatus();
  const auto known = code <= kHighestCode ? static_cast<StatusCode>(code) : StatusCode::kUnknown;
  return MakeStatus(known, Printable(message, kLongestMessageText));
}

// The writer's destructor completes the message.
void AddRequest(const Request& request, FieldWriter&& writer) {
  writer.Reserve(request.service.size() + request.method.size() + request.payload.size() +
                 8 * FieldWriter::kMaxVarint);
  writer.Bytes(kService, request.service);
  writer.Bytes(kMethod, request.method);
  if (!request.payload.empty()) writer.Bytes(kPayload, request.payload);
  if (request.timeout.count() > 0) {
    writer.Number(kTimeoutNano, static_cast<uint64_t>(request.timeout.count()));
  }
  for (const auto& [key, value] : request.metadata) {
    const size_t begin = writer.Begin(kMetadata);
    writer.Bytes(kKey, key);
    writer.Bytes(kValue, value);
    writer.End(begin);
  }
}

void AddStatus(const Status& status, FieldWriter&& writer) {
  const size_t begin = writer.Begin(kStatus);
  writer.Number(kCode, static_cast<uint64_t>(status.code()));
  writer.Bytes(kMessage, Message(status));
  writer.End(begin);
}

}  // namespace

std::string Encode(const Request& request) {
  std::string bytes;
  AddRequest(request, FieldWriter(bytes));
  return bytes;
}

std::string EncodeUpToPayload(const Request& request, size_t payload_size) {
  std::string bytes;
  AddRequest(request, FieldWriter(bytes));
  FieldWriter(bytes).Header(kPayload, payload_size);
  return bytes;
}

StatusOr<Request> DecodeRequest(std::string_view bytes) {
  Request request;
  bool valid = true;
  WireReader reader(bytes);
  while (reader.Next()) {
    switch (reader.field()) {
      case kService:
        request.service = reader.bytes();
        break;
      case kMethod:
        request.method = reader.bytes();
        break;
      case kPayload:
        request.payload = reader.bytes();
        break;
      case kTimeoutNano:
        // A caller whose time has run out may send a negative timeout.
        request.timeout =
            std::chrono::nanoseconds(std::max(static_cast<int64_t>(reader.number()), int64_t{0}));
        break;
      case kMetadata:
        if (request.metadata.size() == kMostMetadata) break;
        valid = DecodePair(reader.bytes(), request.metadata.emplace_back()) && valid;
        break;
      default:
        break;
    }
  }
  if (reader.failed() || !valid) return InvalidArgument("the request is not protobuf");
  return request;
}

std::string EncodeResponse(const StatusOr<std::string>& response) {
  std::string bytes;
  if (!response.ok()) {
    AddStatus(response.status(), FieldWriter(bytes));
  } else if (!response->empty()) {
    FieldWriter(bytes).Bytes(kResponsePayload, *response);
  }
  return bytes;
}

std::string EncodeResponseUpToPayload(size_t payload_size) {
  std::string bytes;
  FieldWriter(bytes).Header(kResponsePayload, payload_size);
  return bytes;
}

StatusOr<std::string_view> DecodeResponse(std::string_view bytes) {
  std::string_view payload;
  Status status;
  WireReader reader(bytes);
  while (reader.Next()) {
    if (reader.field() == kStatus) status = DecodeStatus(reader.bytes());
    if (reader.field() == kResponsePayload) payload = reader.bytes();
  }
  if (reader.failed()) return Internal("the response is not protobuf");
  if (!status.ok()) return status;
  return payload;
}

}  // namespace resmgr::ttrpc
