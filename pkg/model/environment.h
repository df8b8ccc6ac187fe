// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace resmgr {

// One variable of an Environment, valid until that changes. Name and value may be any sequences of
// bytes.
struct EnvironmentVariable {
  std::string_view name;
  std::string_view value;

  friend bool operator==(const EnvironmentVariable&, const EnvironmentVariable&) = default;
};

// The environment variables of a container in their order; a name may come several times.
// Containers have dozens of them, and each creation reads, keeps and shows them: so all texts lie
// in one piece of memory. A value type, thread-compatible.
class Environment {
 public:
  Environment() = default;
  Environment(std::initializer_list<EnvironmentVariable> variables);

  // Appends variables in their order; their texts must not belong to this object. One call for many
  // variables is cheaper than many calls.
  void Add(std::span<const EnvironmentVariable> variables);
  void Add(std::string_view name, std::string_view value);
  // Adds "NAME=value"; without "=" the value is empty.
  void AddText(std::string_view text);

  size_t size() const { return places_.size(); }
  bool empty() const { return places_.empty(); }
  EnvironmentVariable operator[](size_t index) const {
    const std::string_view text = Text(index);
    const size_t name_size = places_[index].name_size;
    return {.name = text.substr(0, name_size), .value = text.substr(name_size + 1)};
  }
  // "NAME=value" of the variable at the index.
  std::string_view Text(size_t index) const {
    const Place& place = places_[index];
    return std::string_view(texts_).substr(place.begin, place.size);
  }
  // The texts of all variables, one behind the other.
  std::string_view texts() const { return texts_; }

  class Iterator {
   public:
    using iterator_category = std::input_iterator_tag;
    using value_type = EnvironmentVariable;
    using difference_type = std::ptrdiff_t;
    using pointer = const EnvironmentVariable*;
    using reference = EnvironmentVariable;

    Iterator(const Environment* environment, size_t index)
        : environment_(environment), index_(index) {}
    EnvironmentVariable operator*() const { return (*environment_)[index_]; }
    Iterator& operator++() {
      ++index_;
      return *this;
    }
    Iterator operator++(int) {
      const Iterator before = *this;
      ++index_;
      return before;
    }
    friend bool operator==(const Iterator& a, const Iterator& b) { return a.index_ == b.index_; }

   private:
    const Environment* environment_;
    size_t index_;
  };
  using const_iterator = Iterator;
  using value_type = EnvironmentVariable;
  Iterator begin() const { return {this, 0}; }
  Iterator end() const { return {this, size()}; }

  friend bool operator==(const Environment&, const Environment&) = default;

 private:
  // The place of "NAME=value" in texts_. Requests have some MiB at most.
  struct Place {
    uint32_t begin = 0;
    uint32_t name_size = 0;
    uint32_t size = 0;

    friend bool operator==(const Place&, const Place&) = default;
  };

  std::string texts_;
  std::vector<Place> places_;
};

}  // namespace resmgr
