// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "pkg/base/status.h"
#include "pkg/h2/bytes.h"
#include "pkg/h2/header_block.h"

namespace resmgr {

// The body of a unary call in one direction, held while its one message is read: without a copy
// when it came in one piece.
class HeldMessage {
 public:
  // `limit`: of bytes, as sent and when decompressed.
  explicit HeldMessage(size_t limit) : limit_(limit) {}

  // `scratch` is for small pieces, which must not keep the whole block alive that they were read
  // into.
  void Add(const h2::Slice& data, h2::Scratch& scratch);
  size_t size() const { return body_.size(); }
  // What has more bytes than the limit is not read any more.
  bool fits() const { return size() <= limit_; }
  const h2::SliceQueue& body() const { return body_; }
  void Clear();

  // The message as the sender wrote it; a view, valid until something is changed here. `headers`
  // tell its compression. InvalidArgument or an error of DecompressGrpc: it cannot be read.
  StatusOr<std::string_view> Read(const h2::HeaderBlock& headers);
  // After Read: the body becomes that of an uncompressed message which goes on with `count` further
  // bytes, not added here.
  void MakeLonger(size_t count);

 private:
  const size_t limit_;
  h2::SliceQueue body_;
  std::string payload_;  // where it does not lie in one piece of the body
  bool decompressed_ = false;
};

}  // namespace resmgr
