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

// A reference-counted piece of memory, in the account (memory.h) while it is referred to. Not
// thread-safe: everything here lives on the loop's thread, which makes the count a plain integer.
class Block {
 public:
  // One reference, which belongs to the caller. Some of those of limits.h's kReadBlock and
  // kScratchBlock are kept for reuse: fresh memory of that size costs more than filling it, and the
  // general allocator tidies all its small pieces up with each of them.
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

  // The first bytes in the block become these, for all slices that see them.
  void Overwrite(std::string_view bytes) {
    std::memcpy(const_cast<uint8_t*>(data_), bytes.data(), bytes.size());
  }
  void RemovePrefix(size_t count) {
    data_ += count;
    size_ -= count;
  }
  // The first `count` bytes.
  Slice Prefix(size_t count) const { return Slice(block_, data_, count); }
  // Whether `place`, in `block`, is where this slice ends.
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

// Cuts small pieces from larger blocks, so that frame headers and short messages end up side by
// side and leave in one piece of one system call.
class Scratch {
 public:
  Scratch() = default;
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  ~Scratch() {
    if (block_ != nullptr) block_->Unref();
  }

  // Room for `size` bytes in block(), to be filled. Without a slice that refers to it, a later call
  // gives it away again.
  uint8_t* Reserve(size_t size) {
    if (static_cast<size_t>(end_ - next_) < size) Renew(size);
    uint8_t* place = next_;
    next_ += size;
    return place;
  }
  // When what was cut has probably left: starts again at the beginning, which is in the processor's
  // cache, if nothing refers to any of it.
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
  // Room for `size` bytes at the end, cut from `scratch`, which the caller fills at once.
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

  absl::InlinedVector<Slice, 2> slices_;  // those before head_ are gone
  size_t head_ = 0;
  size_t size_ = 0;
};

}  // namespace resmgr::h2
