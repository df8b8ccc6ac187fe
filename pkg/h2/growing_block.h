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

  // Makes room for `bytes` bytes in total. The capacity doubles up to `most`, and exceeds it only
  // if `bytes` does.
  void Reserve(size_t bytes, size_t most) {
    if (bytes <= capacity()) return;
    Block* larger = Block::New(std::max(bytes, std::min(std::max(2 * capacity(), kLeast), most)));
    if (size_ > 0) std::memcpy(larger->data(), block_->data(), size_);
    if (block_ != nullptr) block_->Unref();
    block_ = larger;
  }
  // The place for the next bytes, with room for capacity() - size(). Call Count after writing some.
  uint8_t* end() { return block_->data() + size_; }
  void Count(size_t bytes) { size_ += bytes; }

  // Requires room for `bytes`.
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
