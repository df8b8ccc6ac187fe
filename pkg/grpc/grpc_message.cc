// SPDX-License-Identifier: Apache-2.0
#include "pkg/grpc/grpc_message.h"

#include <algorithm>
#include <utility>

#include <zlib.h>

#include "pkg/base/characters.h"
#include "pkg/base/parse.h"
#include "pkg/base/percent.h"
#include "pkg/h2/memory.h"

namespace resmgr {
namespace {

constexpr int kUnknown = 2;
constexpr size_t kInflateStep = size_t{1} << 20;

int ReadCode(std::string_view text) {
  if (text.size() == 1 && IsDigit(text[0])) return text[0] - '0';
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

constexpr size_t kFirstPiece = size_t{16} * 1024;
// Counted for each member of gzip data, since an empty member costs as much time as this many
// bytes.
constexpr size_t kMemberCost = 4096;

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
  // One loop instead of a search for each name, because every call ends with it.
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

Inflater::Inflater(std::string_view input, size_t room, size_t limit)
    : input_(input), most_(room + limit), stream_(std::make_unique<z_stream>()) {
  constexpr int kGzipOnly = 15 + 16;
  h2::Memory::Add(kZlibMemory);
  *stream_ = {};
  started_ = inflateInit2(stream_.get(), kGzipOnly) == Z_OK;
  output_.Reserve(room + kFirstPiece, most_ + 1);
  output_.Count(room);
}

Inflater::~Inflater() {
  h2::Memory::Sub(kZlibMemory);
  if (started_) inflateEnd(stream_.get());
}

StatusOr<bool> Inflater::Step(size_t most) {
  if (!started_) return Internal("zlib cannot start");
  for (size_t left = most; left > 0;) {
    // Room for one byte beyond the limit: if it is used, the output is too long.
    output_.Reserve(output_.size() + 1, most_ + 1);
    const size_t room = std::min(output_.capacity() - output_.size(), left);
    const size_t offered = std::min(input_.size(), left);
    stream_->next_in = reinterpret_cast<Bytef*>(const_cast<char*>(input_.data()));
    stream_->avail_in = static_cast<uInt>(offered);
    stream_->next_out = output_.end();
    stream_->avail_out = static_cast<uInt>(room);
    const int code = inflate(stream_.get(), Z_NO_FLUSH);
    const size_t taken = offered - stream_->avail_in;
    const size_t made = room - stream_->avail_out;
    input_.remove_prefix(taken);
    output_.Count(made);
    if (output_.size() > most_) {
      return ResourceExhausted("the message is too long when decompressed");
    }
    size_t cost = std::max(taken, made);
    if (code == Z_STREAM_END) {
      if (input_.empty()) return true;
      if (inflateReset(stream_.get()) != Z_OK) return Internal("zlib failed");
      cost += kMemberCost;
    } else if (code != Z_OK || cost == 0) {
      return InvalidArgument("the message is not valid gzip data");
    }
    left -= std::min(left, cost);
  }
  return false;
}

}  // namespace resmgr
