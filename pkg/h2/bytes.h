// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include <absl/container/inlined_vector.h>

namespace resmgr::h2 {

// A reference-counted piece of memory, counted by Memory (memory.h) while it is referred to. Not
// thread-safe: blocks live on the loop's thread, so the count is a plain integer.
class Block {
 public:
  // Returns a block with one reference, which belongs to the caller. Some blocks of the sizes
  // kReadBlock and kScratchBlock (limits.h) are kept for reuse: to get fresh memory of that size
  // costs more than to fill it, and the general allocator would merge all its small pieces each
  // time such a block is freed.
  static Block* New(size_t capacity);
  void Ref() { ++references_; }
  void Unref();

  uint8_t* data() { return reinterpret_cast<uint8_t*>(this) + sizeof(Block); }
  size_t capacity() const { return capacity_; }
  bool shared() const { return references_ > 1; }

 private:
  class Pool;
  explicit Block(size_t capacity) : capacity_(capacity) {}
  static void Free(Block* block);

  size_t references_ = 1;
  size_t capacity_;
};

// A view of bytes in a block that keeps the block alive: bytes travel from one socket to the other
// without being copied.
class Slice {
 public:
  Slice() = default;
  // Takes a further reference on the block.
  Slice(Block* block, const uint8_t* data, size_t size) : block_(block), data_(data), size_(size) {
    if (block_ != nullptr) block_->Ref();
  }
  static Slice Copy(std::string_view bytes);
  Slice(Slice&& other) noexcept
      : block_(std::exchange(other.block_, nullptr)), data_(other.data_), size_(other.size_) {}
  Slice(const Slice& other) : Slice(other.block_, other.data_, other.size_) {}
  Slice& operator=(Slice other) noexcept {
    std::swap(block_, other.block_);
    data_ = other.data_;
    size_ = other.size_;
    return *this;
  }
  ~Slice() {
    if (block_ != nullptr) block_->Unref();
  }

  const uint8_t* data() const { return data_; }
  size_t size() const { return size_; }
  std::string_view view() const { return {reinterpret_cast<const char*>(data_), size_}; }

  // Replaces the first bytes in the block, for all slices that share it.
  void Overwrite(std::string_view bytes) {
    std::memcpy(const_cast<uint8_t*>(data_), bytes.data(), bytes.size());
  }
  void RemovePrefix(size_t count) {
    data_ += count;
    size_ -= count;
  }
  // The first `count` bytes.
  Slice Prefix(size_t count) const { return Slice(block_, data_, count); }
  // Whether this slice ends at `place` in `block`.
  bool EndsAt(const Block* block, const uint8_t* place) const {
    return block_ == block && data_ + size_ == place;
  }
  bool Precedes(const Slice& other) const { return EndsAt(other.block_, other.data_); }
  void Extend(size_t count) { size_ += count; }

 private:
  Block* block_ = nullptr;
  const uint8_t* data_ = nullptr;
  size_t size_ = 0;
};

// Cuts small pieces from larger blocks, so that frame headers and short messages are adjacent and
// leave in one piece of one system call.
class Scratch {
 public:
  Scratch() = default;
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  ~Scratch() {
    if (block_ != nullptr) block_->Unref();
  }

  // Returns room for `size` bytes in block(), for the caller to fill. A later call returns the same
  // room again unless a slice refers to it.
  uint8_t* Reserve(size_t size) {
    if (static_cast<size_t>(end_ - next_) < size) Renew(size);
    uint8_t* place = next_;
    next_ += size;
    return place;
  }
  // Starts again at the beginning, which is in the processor's cache, if nothing refers to the
  // block. Called when the pieces have probably left.
  void Rewind() {
    if (block_ != nullptr && !block_->shared()) next_ = block_->data();
  }
  Slice Copy(std::string_view bytes) {
    uint8_t* place = Reserve(bytes.size());
    if (!bytes.empty()) std::memcpy(place, bytes.data(), bytes.size());
    return Slice(block_, place, bytes.size());
  }
  Block* block() const { return block_; }

 private:
  void Renew(size_t size);

  Block* block_ = nullptr;
  uint8_t* next_ = nullptr;
  uint8_t* end_ = nullptr;
};

// Slices in order. Neighbours that touch in memory become one.
class SliceQueue {
 public:
  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  std::span<const Slice> slices() const {
    return std::span(slices_.data(), slices_.size()).subspan(head_);
  }

  void Append(Slice slice);
  // Adds `size` bytes at the end, cut from `scratch`; the caller fills them at once.
  uint8_t* Extend(size_t size, Scratch& scratch) {
    const bool was_empty = empty();
    uint8_t* place = scratch.Reserve(size);
    size_ += size;
    if (!was_empty && slices_.back().EndsAt(scratch.block(), place)) {
      slices_.back().Extend(size);
    } else {
      AppendPiece(scratch.block(), place, size);
    }
    return place;
  }
  void AppendCopy(std::string_view bytes, Scratch& scratch) {
    if (!bytes.empty()) std::memcpy(Extend(bytes.size(), scratch), bytes.data(), bytes.size());
  }
  // Moves the first `count` bytes (at most size()) to the end of `target`.
  void MoveTo(size_t count, SliceQueue& target);
  // Replaces the first bytes (at most size()).
  void Overwrite(std::string_view bytes);
  // Drops the first `count` bytes (at most size()).
  void Drop(size_t count);
  void Clear();
  std::string ToString() const;

 private:
  void AppendPiece(Block* block, const uint8_t* data, size_t size);
  void PopFront();

  absl::InlinedVector<Slice, 2> slices_;  // slices before head_ are gone
  size_t head_ = 0;
  size_t size_ = 0;
};

}  // namespace resmgr::h2
