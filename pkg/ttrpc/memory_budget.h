// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <utility>

namespace resmgr::ttrpc {

// How much all connections that share it may hold of what their peers sent: messages that are not
// complete, and requests that are not answered. Outlives its shares. Loop's thread only.
class MemoryBudget {
 public:
  static constexpr size_t kDefault = size_t{64} << 20;

  explicit MemoryBudget(size_t most = kDefault) : most_(most) {}
  MemoryBudget(const MemoryBudget&) = delete;
  MemoryBudget& operator=(const MemoryBudget&) = delete;

  size_t held() const { return held_; }

  // A part of it, given back with the object.
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
      if (budget_ != nullptr) budget_->held_ -= bytes_;
    }

    // Whether it is part of a budget.
    explicit operator bool() const { return budget_ != nullptr; }

   private:
    friend class MemoryBudget;
    Share(MemoryBudget& budget, size_t bytes) : budget_(&budget), bytes_(bytes) {}

    MemoryBudget* budget_ = nullptr;
    size_t bytes_ = 0;
  };

  // An empty share: there is no room.
  Share Take(size_t bytes) {
    if (bytes > most_ - held_) return {};
    held_ += bytes;
    return Share(*this, bytes);
  }

 private:
  const size_t most_;
  size_t held_ = 0;
};

}  // namespace resmgr::ttrpc
