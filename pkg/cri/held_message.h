// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string_view>

#include "pkg/base/status.h"
#include "pkg/cri/message_splice.h"
#include "pkg/grpc/grpc_message.h"
#include "pkg/h2/bytes.h"
#include "pkg/h2/growing_block.h"
#include "pkg/h2/header_block.h"

namespace resmgr {

// The body of a unary call in one direction, held while its one message is read: without a copy if
// it came in one piece, else copied into one piece.
class HeldMessage {
 public:
  // `limit`: bytes of the message, as sent and when decompressed, without gRPC's prefix.
  explicit HeldMessage(size_t limit) : limit_(limit) {}

  // `scratch` is for small pieces, which must not keep their whole read block alive.
  void Add(const h2::Slice& data, h2::Scratch& scratch);
  size_t size() const { return body_.size(); }
  // False if the body exceeds the limit; it cannot be read then.
  bool fits() const;
  const h2::SliceQueue& body() const { return body_; }
  // Bytes of memory kept for it: if it came in one piece, the whole block that has it.
  size_t memory() const { return memory_ + (inflater_ == nullptr ? 0 : inflater_->memory()); }
  void Clear();

  // Called when the body is complete: finds the message in it. `headers` name its compression. The
  // message cannot be read if the result is kInvalidArgument, or kUnimplemented for an unknown
  // compression.
  Status Open(const h2::HeaderBlock& headers);
  // Whether the body ends before a message does: no runtime can read it either.
  bool cut_short() const;
  // After Open: whether the message is compressed and not decompressed yet.
  bool packed() const { return packed_; }
  // Decompresses up to `most` bytes more; true at the end. If it returns an error of
  // Inflater::Step, the message cannot be read.
  StatusOr<bool> Unpack(size_t most);
  // The complete message as the sender wrote it, valid until a change of this object.
  std::string_view message() const { return message_; }

  // Does Open and all of Unpack at once.
  StatusOr<std::string_view> Read(const h2::HeaderBlock& headers);
  // After these steps: changes the prefix to that of an uncompressed message with `count` further
  // bytes, which the caller sends after this body.
  void MakeLonger(size_t count);
  // Replaces the body by another message in pieces, perhaps of the held one; message() returns it
  // then.
  void Replace(std::span<const std::string_view> pieces);

 private:
  void AddFurther(const h2::Slice& data);

  const size_t limit_;
  h2::SliceQueue body_;
  h2::GrowingBlock own_;  // the body, if it came in several pieces
  size_t memory_ = 0;
  std::unique_ptr<Inflater> inflater_;
  bool packed_ = false;
  std::string_view message_;
};

}  // namespace resmgr
