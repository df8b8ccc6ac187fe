// SPDX-License-Identifier: Apache-2.0
#include "pkg/h2/bytes.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>
#include <vector>

#include <sys/mman.h>

#include "pkg/h2/limits.h"
#include "pkg/h2/memory.h"

namespace resmgr::h2 {

namespace {

// Blocks of this size and more are mapped, so that their memory returns to the kernel at once: the
// general allocator would keep the memory of a few large requests.
constexpr size_t kMapped = size_t{1} << 20;

void* Map(size_t size) {
  void* const memory =
      ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  return memory;
}

}  // namespace

// Free blocks of one size; each thread has its own. Scratch blocks of the general allocator cost
// 350 instructions for each creation.
class Block::Pool {
 public:
  Pool() = default;
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;
  ~Pool() {
    for (Block* block : free_)
      Free(block);
  }

  // The pool for blocks of this size; nullptr if there is none.
  static Pool* Of(size_t capacity) {
    thread_local Pool reading;
    thread_local Pool scratch;
    if (capacity == kReadBlock) return &reading;
    return capacity == kScratchBlock ? &scratch : nullptr;
  }
  Block* Take() {
    if (free_.empty()) return nullptr;
    Block* block = free_.back();
    free_.pop_back();
    block->references_ = 1;
    return block;
  }
  bool Put(Block* block) {
    if (free_.size() >= kMost) return false;
    free_.push_back(block);
    return true;
  }

 private:
  static constexpr size_t kMost = 8;
  std::vector<Block*> free_;
};

Block* Block::New(size_t capacity) {
  Memory::Add(capacity);
  Pool* const pool = Pool::Of(capacity);
  if (Block* const kept = pool == nullptr ? nullptr : pool->Take()) return kept;
  void* const memory =
      capacity < kMapped ? ::operator new(sizeof(Block) + capacity) : Map(sizeof(Block) + capacity);
  return new (memory) Block(capacity);
}

void Block::Free(Block* block) {
  const size_t capacity = block->capacity_;
  block->~Block();
  if (capacity < kMapped) {
    ::operator delete(block);
  } else {
    ::munmap(block, sizeof(Block) + capacity);
  }
}

void Block::Unref() {
  if (--references_ > 0) return;
  Memory::Sub(capacity_);
  Pool* const pool = Pool::Of(capacity_);
  if (pool == nullptr || !pool->Put(this)) Free(this);
}

Slice Slice::Copy(std::string_view bytes) {
  Block* block = Block::New(bytes.size());
  if (!bytes.empty()) std::memcpy(block->data(), bytes.data(), bytes.size());
  Slice slice(block, block->data(), bytes.size());
  block->Unref();
  return slice;
}

void SliceQueue::Append(Slice slice) {
  if (slice.size() == 0) return;
  size_ += slice.size();
  if (head_ < slices_.size() && slices_.back().Precedes(slice)) {
    slices_.back().Extend(slice.size());
    return;
  }
  slices_.push_back(std::move(slice));
}

// Not inlined: most frames extend the last slice and do not come here.
[[gnu::noinline]] void SliceQueue::AppendPiece(Block* block, const uint8_t* data, size_t size) {
  slices_.emplace_back(block, data, size);
}

void SliceQueue::PopFront() {
  slices_[head_] = Slice();
  if (++head_ == slices_.size()) {
    slices_.clear();
    head_ = 0;
  } else if (head_ >= 64 && head_ * 2 >= slices_.size()) {
    slices_.erase(slices_.begin(), slices_.begin() + static_cast<std::ptrdiff_t>(head_));
    head_ = 0;
  }
}

void SliceQueue::MoveTo(size_t count, SliceQueue& target) {
  size_ -= count;
  while (count > 0) {
    Slice& first = slices_[head_];
    if (first.size() > count) {
      target.Append(first.Prefix(count));
      first.RemovePrefix(count);
      return;
    }
    count -= first.size();
    target.Append(std::move(first));
    PopFront();
  }
}

void SliceQueue::Overwrite(std::string_view bytes) {
  for (size_t i = head_; !bytes.empty(); ++i) {
    const std::string_view piece = bytes.substr(0, slices_[i].size());
    slices_[i].Overwrite(piece);
    bytes.remove_prefix(piece.size());
  }
}

void SliceQueue::Drop(size_t count) {
  if (count == size_) return Clear();
  size_ -= count;
  while (count > 0) {
    Slice& first = slices_[head_];
    if (first.size() > count) {
      first.RemovePrefix(count);
      return;
    }
    count -= first.size();
    PopFront();
  }
}

void SliceQueue::Clear() {
  slices_.clear();
  head_ = 0;
  size_ = 0;
}

std::string SliceQueue::ToString() const {
  std::string bytes;
  bytes.reserve(size_);
  for (const Slice& slice : slices())
    bytes.append(slice.view());
  return bytes;
}

[[gnu::cold]] void Scratch::Renew(size_t size) {
  if (block_ == nullptr || block_->shared() || block_->capacity() < size) {
    if (block_ != nullptr) block_->Unref();
    block_ = Block::New(std::max(size, kScratchBlock));
  }
  next_ = block_->data();
  end_ = next_ + block_->capacity();
}

}  // namespace resmgr::h2
