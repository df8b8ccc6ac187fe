// SPDX-License-Identifier: Apache-2.0
#include "pkg/cri/held_message.h"

#include "pkg/h2/limits.h"

namespace resmgr {
namespace {

// Pieces longer than this are referenced, not copied, even if that keeps the whole read block
// alive.
constexpr size_t kSmall = 2048;

}  // namespace

void HeldMessage::Add(const h2::Slice& data, h2::Scratch& scratch) {
  if (!body_.empty()) {
    AddFurther(data);
  } else if (data.size() <= kSmall) {
    body_.AppendCopy(data.view(), scratch);
    memory_ = h2::kScratchBlock;
  } else {
    body_.Append(data);
    memory_ = h2::kReadBlock;
  }
}

// Copies all pieces into one block: otherwise small pieces would keep blocks alive that other calls
// share.
[[gnu::noinline]] void HeldMessage::AddFurther(const h2::Slice& data) {
  const size_t size = body_.size() + data.size();
  const bool first = own_.size() == 0;
  const std::string_view begin = first ? body_.slices().front().view() : own_.slice().view();
  const size_t whole = begin.size() < kGrpcPrefixSize ? 0 : GrpcBodySize(begin);
  // A body that is longer than its prefix says must not be copied for each piece.
  own_.Reserve(size, size <= whole && whole <= limit_ + kGrpcPrefixSize ? whole : limit_);
  if (first) own_.Append(body_.slices().front().view());
  own_.Append(data.view());
  body_.Clear();
  body_.Append(own_.slice());
  memory_ = own_.capacity();
}

bool HeldMessage::fits() const {
  return size() <= limit_ + kGrpcPrefixSize;
}

bool HeldMessage::cut_short() const {
  if (body_.empty()) return true;
  const std::string_view body = body_.slices().front().view();
  return body.size() < kGrpcPrefixSize || GrpcBodySize(body) > body.size();
}

void HeldMessage::Clear() {
  body_.Clear();
  own_.Clear();
  inflater_.reset();
  packed_ = false;
  memory_ = 0;
  message_ = {};
}

Status HeldMessage::Open(const h2::HeaderBlock& headers) {
  if (body_.empty()) return InvalidArgument("it has no message");
  if (!fits()) return InvalidArgument("it has more than {} bytes", limit_);
  const std::string_view body = body_.slices().front().view();
  if (body.size() < kGrpcPrefixSize || GrpcBodySize(body) != body.size()) {
    return InvalidArgument("it is not one gRPC message");
  }
  message_ = body.substr(kGrpcPrefixSize);
  const bool compressed = (body.front() & 1) != 0;
  if (!compressed) return OkStatus();
  const std::string_view encoding = headers.Find("grpc-encoding");
  RESMGR_RETURN_IF_ERROR(CheckGrpcEncoding(encoding));
  if (encoding == "gzip") {
    inflater_ = std::make_unique<Inflater>(message_, kGrpcPrefixSize, limit_);
    packed_ = true;
  }
  return OkStatus();
}

StatusOr<bool> HeldMessage::Unpack(size_t most) {
  if (!packed_) return true;
  StatusOr<bool> whole = inflater_->Step(most);
  if (!whole.ok()) {
    inflater_.reset();
    packed_ = false;
  } else if (*whole) {
    packed_ = false;
    message_ = inflater_->output().view().substr(kGrpcPrefixSize);
  }
  return whole;
}

StatusOr<std::string_view> HeldMessage::Read(const h2::HeaderBlock& headers) {
  RESMGR_RETURN_IF_ERROR(Open(headers));
  bool whole = false;
  while (!whole) {
    RESMGR_ASSIGN_OR_RETURN(whole, Unpack(limit_ + 1));
  }
  return message_;
}

void HeldMessage::MakeLonger(size_t count) {
  if (inflater_ != nullptr) {
    body_.Clear();
    body_.Append(inflater_->output());
  }
  body_.Overwrite(EncodeGrpcPrefix(false, body_.size() - kGrpcPrefixSize + count));
}

void HeldMessage::Replace(std::span<const std::string_view> pieces) {
  size_t size = 0;
  for (const std::string_view piece : pieces)
    size += piece.size();
  h2::GrowingBlock whole;
  whole.Reserve(kGrpcPrefixSize + size, kGrpcPrefixSize + size);
  whole.Append(EncodeGrpcPrefix(false, size));
  for (const std::string_view piece : pieces)
    whole.Append(piece);
  Clear();
  body_.Append(whole.slice());
  memory_ = whole.capacity();
  message_ = body_.slices().front().view().substr(kGrpcPrefixSize);
}

}  // namespace resmgr
