// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "pkg/h2/bytes.h"

namespace resmgr::h2 {

// Bytes in one block, which is replaced by a larger one as they grow: for content that has to be
// read as a whole. Loop's thread only.
class GrowingBlock {
 public:
  GrowingBlock() = default;
  GrowingBlock(const GrowingBlock&) = delete;
  GrowingBlock& operator=(const GrowingBlock&) = delete;
  ~GrowingBlock() { Clear(); }

  size_t size() const { return size_; }
  size_t capacity() const { return block_ == nullptr ? 0 : block_->capacity(); }

  // Makes room for `bytes` in total: doubles the capacity, but not beyond `most` unless they need
  // it.
  void Reserve(size_t bytes, size_t most) {
    if (bytes <= capacity()) return;
    Block* larger = Block::New(std::max(bytes, std::min(std::max(2 * capacity(), kLeast), most)));
    if (size_ > 0) std::memcpy(larger->data(), block_->data(), size_);
    if (block_ != nullptr) block_->Unref();
    block_ = larger;
  }
  // Where the next bytes belong, capacity() - size() of them. Call Count for those that were
  // written.
  uint8_t* end() { return block_->data() + size_; }
  void Count(size_t bytes) { size_ += bytes; }

  // There must be room for them.
  void Append(std::string_view bytes) {
    if (!bytes.empty()) std::memcpy(end(), bytes.data(), bytes.size());
    size_ += bytes.size();
  }
  // All bytes so far; later growth is not visible in the slice. Requires a former Reserve.
  Slice slice() const { return Slice(block_, block_->data(), size_); }
  void Clear() {
    if (block_ != nullptr) block_->Unref();
    block_ = nullptr;
    size_ = 0;
  }

 private:
  static constexpr size_t kLeast = size_t{32} * 1024;

  Block* block_ = nullptr;
  size_t size_ = 0;
};

}  // namespace resmgr::h2
