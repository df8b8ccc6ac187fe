// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace resmgr::h2 {

// Counts all memory that peers make this process hold: bytes that were read or are to be sent,
// header fields, and the calls' own state. One count per thread, hence one for the process, since
// all of these live on the loop's thread.
class Memory {
 public:
  static size_t held() { return held_; }
  static void Add(size_t bytes) { held_ += bytes; }
  static void Sub(size_t bytes) { held_ -= bytes; }

 private:
  // clang-tidy does not recognize a constinit variable as a private member.
  // NOLINTNEXTLINE(readability-identifier-naming)
  static inline constinit thread_local size_t held_ = 0;
};

// A text that Memory counts; it takes no memory while it is empty.
class HeldText {
 public:
  HeldText() = default;
  HeldText(const HeldText&) = delete;
  HeldText& operator=(const HeldText&) = delete;
  ~HeldText() { Memory::Sub(counted_); }

  void Append(std::string_view bytes) {
    text_.append(bytes);
    Count();
  }
  void Clear() {
    if (counted_ == 0) return text_.clear();
    std::string().swap(text_);  // an assignment would keep the memory
    Count();
  }
  std::string_view view() const { return text_; }
  size_t size() const { return text_.size(); }

 private:
  // A text that fits into the object itself takes no further memory.
  void Count() {
    const size_t now = text_.capacity() < sizeof(std::string) ? 0 : text_.capacity();
    Memory::Add(now);
    Memory::Sub(counted_);
    counted_ = now;
  }

  std::string text_;
  size_t counted_ = 0;
};

}  // namespace resmgr::h2
