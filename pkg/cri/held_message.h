// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <string_view>

#include "pkg/base/status.h"
#include "pkg/cri/message_splice.h"
#include "pkg/grpc/inflater.h"
#include "pkg/h2/bytes.h"
#include "pkg/h2/growing_block.h"
#include "pkg/h2/header_block.h"

namespace resmgr {

// The body of a unary call in one direction, held while its one message is read: without a copy
// when it came in one piece, else in one piece of its own.
class HeldMessage {
 public:
  // `limit`: of the message's bytes, as sent and when decompressed. gRPC's prefix is not one of
  // them.
  explicit HeldMessage(size_t limit) : limit_(limit) {}

  // `scratch` is for small pieces, which must not keep the whole block alive that they were read
  // into.
  void Add(const h2::Slice& data, h2::Scratch& scratch);
  size_t size() const { return body_.size(); }
  // What has more bytes than the limit is not read any more.
  bool fits() const;
  const h2::SliceQueue& body() const { return body_; }
  // Bytes of memory that are kept for it: where it came in one piece, all of the block that it was
  // read into.
  size_t memory() const { return memory_ + (inflater_ == nullptr ? 0 : inflater_->memory()); }
  void Clear();

  // The body is complete: finds the message in it. `headers` tell its compression. InvalidArgument,
  // or Unimplemented for the compression: it cannot be read.
  Status Open(const h2::HeaderBlock& headers);
  // The body ends before a message does: no runtime reads it either.
  bool cut_short() const;
  // After Open: it is compressed and not unpacked.
  bool packed() const { return packed_; }
  // Decompresses up to `most` bytes more; true when that was all. Errors of Inflater::Step: it
  // cannot be read.
  StatusOr<bool> Unpack(size_t most);
  // Then: the message as the sender wrote it, valid until something is changed here.
  std::string_view message() const { return message_; }

  // All of that at once.
  StatusOr<std::string_view> Read(const h2::HeaderBlock& headers);
  // After all of that: the body becomes that of an uncompressed message which goes on with `count`
  // further bytes, not added here.
  void MakeLonger(size_t count);
  // The same: the body becomes that of this message, made of the one that is held.
  void Replace(const SplicedMessage& message);
  // The same of any other one, which message() is then.
  void Replace(std::string_view message);

 private:
  void AddFurther(const h2::Slice& data);
  void Take(const h2::GrowingBlock& whole);

  const size_t limit_;
  h2::SliceQueue body_;
  h2::GrowingBlock own_;  // the body, where it came in several pieces
  size_t memory_ = 0;
  std::unique_ptr<Inflater> inflater_;
  bool packed_ = false;
  std::string_view message_;
};

}  // namespace resmgr
