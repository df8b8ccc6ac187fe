// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "pkg/base/status.h"
#include "pkg/h2/bytes.h"
#include "pkg/h2/growing_block.h"
#include "pkg/h2/header_block.h"

struct z_stream_s;

namespace resmgr {

// gRPC over HTTP/2 (PROTOCOL-HTTP2.md of gRPC, "Length-Prefixed-Message"): a message is a flag byte
// (compressed or not), a length of four bytes, big endian, and the payload.
inline constexpr size_t kGrpcPrefixSize = 5;

// One message of a body.
struct GrpcMessage {
  bool compressed = false;
  size_t size = 0;      // bytes of the payload
  std::string payload;  // at most the reader's limit of bytes
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
  // Bytes of memory of an incomplete message.
  size_t held() const { return message_.payload.empty() ? 0 : message_.payload.capacity(); }

 private:
  size_t limit_;
  Sink sink_;
  std::string prefix_;
  GrpcMessage message_;
  size_t received_ = 0;
};

// The length, prefix included, of a body of one message that begins with these bytes, at least
// kGrpcPrefixSize.
size_t GrpcBodySize(std::string_view begin);

std::string EncodeGrpcPrefix(bool compressed, size_t size);

// Whether messages with this header grpc-encoding (PROTOCOL-HTTP2.md, "Message-Encoding") can be
// read: identity, gzip, or none. Otherwise kUnimplemented.
Status CheckGrpcEncoding(std::string_view encoding);

// Returns the decompressed payload. Runs in one step, so on the loop use it only with a small
// `limit`, and Inflater otherwise. `encoding` is the header grpc-encoding. kUnimplemented as above,
// kInvalidArgument for malformed data, kResourceExhausted above `limit` bytes.
StatusOr<std::string> DecompressGrpc(std::string_view payload, std::string_view encoding,
                                     size_t limit);

// The outcome of a call.
struct GrpcStatus {
  int code = 0;  // as received: may be unknown to gRPC
  std::string message;
  bool ok() const { return code == 0; }
};

// Reads trailers (or the only header block). A missing grpc-status counts as UNKNOWN.
GrpcStatus ReadGrpcStatus(const h2::HeaderBlock& trailers);

// The timeout of the client's call (grpc-timeout). nullopt: absent or malformed.
std::optional<std::chrono::milliseconds> ReadGrpcTimeout(const h2::HeaderBlock& headers);
// Adds grpc-status and percent-encoded grpc-message (PROTOCOL-HTTP2.md, "Responses").
void AddGrpcStatus(const Status& status, h2::HeaderBlock& trailers);

// Decompresses gzip (RFC 1952) in steps, because a few bytes may become many megabytes. Several
// members yield their contents in order, as the format says. Loop's thread only.
class Inflater {
 public:
  // `input` outlives this object. The output begins after `room` bytes, which are left for the
  // caller to write, and has at most `limit` bytes.
  Inflater(std::string_view input, size_t room, size_t limit);
  ~Inflater();
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;

  // Continues for at most `most` bytes of input or output. True: the output is complete.
  // kInvalidArgument: not valid gzip data. kResourceExhausted: more than the limit.
  StatusOr<bool> Step(size_t most);

  // `room` unset bytes, followed by the output so far.
  h2::Slice output() const { return output_.slice(); }
  // Bytes of memory that this object takes.
  size_t memory() const { return kZlibMemory + output_.capacity(); }

 private:
  // Bytes of zlib's window and tables.
  static constexpr size_t kZlibMemory = size_t{48} * 1024;

  std::string_view input_;  // the unread rest
  const size_t most_;       // room and output together
  std::unique_ptr<z_stream_s> stream_;
  bool started_ = false;
  h2::GrowingBlock output_;
};

}  // namespace resmgr
