// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstring>
#include <memory>
#include <string_view>

#include "pkg/docker/http_head.h"

namespace resmgr::docker {

// A buffer for one direction: first the bytes that may leave, then those that wait. Takes memory
// only while it has bytes. Thread-compatible.
class Passage {
 public:
  static constexpr size_t kCapacity = kMaxHead;

  size_t room() const { return kCapacity - (end_ - begin_); }
  bool empty() const { return begin_ == end_; }
  std::string_view leaving() const { return View(begin_, leave_); }
  std::string_view waiting() const { return View(leave_, end_); }

  // Free space for the next room() bytes.
  char* Free() {
    if (data_ == nullptr) data_ = std::make_unique_for_overwrite<char[]>(kCapacity);
    if (begin_ > 0) {
      std::memmove(data_.get(), data_.get() + begin_, end_ - begin_);
      leave_ -= begin_;
      end_ -= begin_;
      begin_ = 0;
    }
    return data_.get() + end_;
  }
  void Added(size_t size) { end_ += size; }
  // Lets the next `size` waiting bytes leave.
  void Allow(size_t size) { leave_ += size; }
  // Removes `size` bytes that have left; also frees memory when the buffer is empty.
  void Left(size_t size) {
    begin_ += size;
    TrimIfEmpty();
  }
  void DropWaiting() {
    end_ = leave_;
    TrimIfEmpty();
  }
  void Clear() {
    begin_ = leave_ = end_;
    TrimIfEmpty();
  }

 private:
  std::string_view View(size_t from, size_t to) const {
    return data_ == nullptr ? std::string_view() : std::string_view(data_.get() + from, to - from);
  }
  void TrimIfEmpty() {
    if (!empty()) return;
    begin_ = leave_ = end_ = 0;
    data_.reset();
  }

  std::unique_ptr<char[]> data_;
  size_t begin_ = 0;
  size_t leave_ = 0;  // begin_ <= leave_ <= end_
  size_t end_ = 0;
};

}  // namespace resmgr::docker
