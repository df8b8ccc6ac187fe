// SPDX-License-Identifier: Apache-2.0
#include "pkg/grpc/grpc_message.h"

#include <algorithm>
#include <utility>

#include "pkg/base/parse.h"
#include "pkg/base/percent.h"
#include "pkg/grpc/inflater.h"

namespace resmgr {

namespace {

constexpr int kUnknown = 2;
constexpr size_t kInflateStep = size_t{1} << 20;

int ReadCode(std::string_view text) {
  if (text.size() == 1 && text[0] >= '0' && text[0] <= '9') return text[0] - '0';
  const auto code = ParseInt(text);
  return code && *code >= 0 && *code <= INT32_MAX ? static_cast<int>(*code) : kUnknown;
}

std::string PercentEncode(std::string_view text) {
  std::string encoded;
  encoded.reserve(text.size());
  for (const char c : text) {
    if (c >= ' ' && c <= '~' && c != '%') {
      encoded.push_back(c);
    } else {
      encoded += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
  }
  return encoded;
}

}  // namespace

void GrpcMessageReader::Feed(std::string_view bytes) {
  while (!bytes.empty()) {
    if (prefix_.size() < kGrpcPrefixSize) {
      const size_t count = std::min(kGrpcPrefixSize - prefix_.size(), bytes.size());
      prefix_.append(bytes.substr(0, count));
      bytes.remove_prefix(count);
      if (prefix_.size() < kGrpcPrefixSize) return;
      message_ = {.compressed = (prefix_[0] & 1) != 0, .size = 0, .payload = {}};
      for (size_t i = 1; i < kGrpcPrefixSize; ++i) {
        message_.size = message_.size << 8 | static_cast<uint8_t>(prefix_[i]);
      }
      received_ = 0;
    }
    const size_t count = std::min(message_.size - received_, bytes.size());
    const size_t room = limit_ - std::min(limit_, message_.payload.size());
    message_.payload.append(bytes.substr(0, std::min(count, room)));
    received_ += count;
    bytes.remove_prefix(count);
    if (received_ < message_.size) return;
    prefix_.clear();
    sink_(std::exchange(message_, {}));
  }
}

size_t GrpcBodySize(std::string_view begin) {
  size_t size = 0;
  for (size_t i = 1; i < kGrpcPrefixSize; ++i)
    size = size << 8 | static_cast<uint8_t>(begin[i]);
  return kGrpcPrefixSize + size;
}

std::string EncodeGrpcPrefix(bool compressed, size_t size) {
  std::string prefix(1, compressed ? '\1' : '\0');
  for (int shift = 24; shift >= 0; shift -= 8) {
    prefix.push_back(static_cast<char>(static_cast<uint8_t>(size >> shift)));
  }
  return prefix;
}

Status CheckGrpcEncoding(std::string_view encoding) {
  if (encoding.empty() || encoding == "identity" || encoding == "gzip") return OkStatus();
  return Unimplemented("messages compressed with {} are not supported", Printable(encoding, 32));
}

StatusOr<std::string> DecompressGrpc(std::string_view payload, std::string_view encoding,
                                     size_t limit) {
  if (encoding.empty() || encoding == "identity") return std::string(payload);
  RESMGR_RETURN_IF_ERROR(CheckGrpcEncoding(encoding));
  Inflater inflater(payload, 0, limit);
  bool whole = false;
  while (!whole) {
    RESMGR_ASSIGN_OR_RETURN(whole, inflater.Step(kInflateStep));
  }
  return std::string(inflater.output().view());
}

// Parses gRPC's "TimeoutValue TimeoutUnit": up to eight digits and a unit.
std::optional<std::chrono::milliseconds> ReadGrpcTimeout(const h2::HeaderBlock& headers) {
  constexpr size_t kMostDigits = 8;
  const std::string_view text = headers.Find("grpc-timeout");
  if (text.size() < 2 || text.size() > kMostDigits + 1) return std::nullopt;
  const std::optional<uint64_t> value = ParseUint(text.substr(0, text.size() - 1));
  if (!value) return std::nullopt;
  const auto number = static_cast<int64_t>(*value);
  using std::chrono::duration_cast;
  using std::chrono::milliseconds;
  switch (text.back()) {
    case 'H':
      return std::chrono::hours(number);
    case 'M':
      return std::chrono::minutes(number);
    case 'S':
      return std::chrono::seconds(number);
    case 'm':
      return milliseconds(number);
    case 'u':
      return duration_cast<milliseconds>(std::chrono::microseconds(number));
    case 'n':
      return duration_cast<milliseconds>(std::chrono::nanoseconds(number));
    default:
      return std::nullopt;
  }
}

GrpcStatus ReadGrpcStatus(const h2::HeaderBlock& trailers) {
  std::string_view code;
  std::string_view message;
  // In one pass, because every call ends with it.
  for (const h2::HeaderBlock::Field& field : trailers.fields()) {
    const std::string_view name = trailers.NameOf(field);
    if (name == "grpc-status" && code.empty()) code = trailers.ValueOf(field);
    if (name == "grpc-message" && message.empty()) message = trailers.ValueOf(field);
  }
  GrpcStatus status{.code = ReadCode(code), .message = {}};
  if (!message.empty()) status.message = PercentDecodedLeniently(message);
  return status;
}

void AddGrpcStatus(const Status& status, h2::HeaderBlock& trailers) {
  trailers.Add("grpc-status", std::to_string(static_cast<int>(status.code())));
  if (!status.ok()) trailers.Add("grpc-message", PercentEncode(Message(status)));
}

}  // namespace resmgr
