// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "pkg/base/status.h"
#include "pkg/h2/bytes.h"
#include "pkg/h2/header_block.h"

namespace resmgr {

// gRPC over HTTP/2 (PROTOCOL-HTTP2.md of gRPC, "Length-Prefixed-Message"): a message is a flag byte
// (compressed or not), a length of four bytes, big endian, and the payload.
inline constexpr size_t kGrpcPrefixSize = 5;

// One message of a body.
struct GrpcMessage {
  bool compressed = false;
  size_t size = 0;      // of the payload
  std::string payload;  // at most the reader's limit of it
  bool truncated() const { return payload.size() < size; }
};

// Splits a body into its messages while it passes. Keeps at most `limit` bytes of each.
class GrpcMessageReader {
 public:
  using Sink = std::function<void(GrpcMessage)>;
  GrpcMessageReader(size_t limit, Sink sink) : limit_(limit), sink_(std::move(sink)) {}

  void Feed(std::string_view bytes);
  // Whether the body so far ends with a whole message.
  bool complete() const { return prefix_.empty(); }
  // The memory that the message takes of which more is to come.
  size_t held() const { return message_.payload.empty() ? 0 : message_.payload.capacity(); }

 private:
  size_t limit_;
  Sink sink_;
  std::string prefix_;
  GrpcMessage message_;
  size_t received_ = 0;
};

// How long a body is, prefix included, that consists of one message and begins with these bytes,
// which are kGrpcPrefixSize at least.
size_t GrpcBodySize(std::string_view begin);

std::string EncodeGrpcPrefix(bool compressed, size_t size);

// Whether messages with this header grpc-encoding (PROTOCOL-HTTP2.md, "Message-Encoding") can be
// read: identity, gzip, or none. Otherwise Unimplemented.
Status CheckGrpcEncoding(std::string_view encoding);

// The payload as the sender wrote it, at once: only for small limits where others wait for the loop
// (inflater.h). `encoding` is the header grpc-encoding. Unimplemented as above, InvalidArgument for
// broken data, ResourceExhausted above `limit` bytes.
StatusOr<std::string> DecompressGrpc(std::string_view payload, std::string_view encoding,
                                     size_t limit);

// The outcome of a call.
struct GrpcStatus {
  int code = 0;  // as on the wire: may be one that no version of gRPC knows
  std::string message;
  bool ok() const { return code == 0; }
};

// From trailers (or the only header block). A missing grpc-status counts as UNKNOWN.
GrpcStatus ReadGrpcStatus(const h2::HeaderBlock& trailers);

// The time that the client gives its call (grpc-timeout). nullopt: there is none, or it cannot be
// read.
std::optional<std::chrono::milliseconds> ReadGrpcTimeout(const h2::HeaderBlock& headers);
// grpc-status and grpc-message, percent-encoded (PROTOCOL-HTTP2.md, "Responses").
void AddGrpcStatus(const Status& status, h2::HeaderBlock& trailers);

}  // namespace resmgr
