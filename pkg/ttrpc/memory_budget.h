// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <utility>

namespace resmgr::ttrpc {

// Limits the memory of received bytes for all connections that share it: incomplete messages and
// unanswered requests. Outlives its shares. Loop's thread only.
class MemoryBudget {
 public:
  static constexpr size_t kDefault = size_t{64} << 20;

  // Shares up to this size in bytes do not count for `whole`, so they are never refused because of
  // it.
  static constexpr size_t kSmall = size_t{16} << 10;

  // `whole`, which may be null and outlives this object, is a further budget that several share.
  explicit MemoryBudget(size_t most = kDefault, MemoryBudget* whole = nullptr)
      : most_(most), whole_(whole) {}
  MemoryBudget(const MemoryBudget&) = delete;
  MemoryBudget& operator=(const MemoryBudget&) = delete;

  size_t held() const { return held_; }

  // A reserved number of bytes; the destructor releases them.
  class Share {
   public:
    Share() = default;
    Share(Share&& other) noexcept
        : budget_(std::exchange(other.budget_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
    Share& operator=(Share&& other) noexcept {
      std::swap(budget_, other.budget_);
      std::swap(bytes_, other.bytes_);
      return *this;
    }
    ~Share() {
      if (budget_ != nullptr) budget_->GiveBack(bytes_);
    }

    // False for an empty share.
    explicit operator bool() const { return budget_ != nullptr; }

   private:
    friend class MemoryBudget;
    Share(MemoryBudget& budget, size_t bytes) : budget_(&budget), bytes_(bytes) {}

    MemoryBudget* budget_ = nullptr;
    size_t bytes_ = 0;
  };

  // Reserves `bytes`; an empty share if there is no room.
  Share Take(size_t bytes) {
    if (bytes > most_ - held_) return {};
    if (IsOfWhole(bytes)) {
      if (bytes > whole_->most_ - whole_->held_) return {};
      whole_->held_ += bytes;
    }
    held_ += bytes;
    return Share(*this, bytes);
  }

 private:
  bool IsOfWhole(size_t bytes) const { return whole_ != nullptr && bytes > kSmall; }
  void GiveBack(size_t bytes) {
    held_ -= bytes;
    if (IsOfWhole(bytes)) whole_->held_ -= bytes;
  }

  const size_t most_;
  MemoryBudget* const whole_;
  size_t held_ = 0;
};

}  // namespace resmgr::ttrpc
