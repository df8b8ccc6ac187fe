// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace resmgr::h2 {

// The header fields of one HEADERS frame, in the order in which they came, all texts in one piece
// of memory. A value type.
class HeaderBlock {
 public:
  struct Field {
    uint32_t name_at = 0;  // in text()
    uint32_t name_size = 0;
    uint32_t value_size = 0;   // the value stands behind the name
    bool never_index = false;  // the sender asked that no hop puts it into a compression table

    friend bool operator==(const Field&, const Field&) = default;
  };
  friend bool operator==(const HeaderBlock&, const HeaderBlock&) = default;

  // Names are lower case.
  void Add(std::string_view name, std::string_view value, bool never_index = false);
  // Removes all fields of that name.
  void Remove(std::string_view name);
  void Clear();

  // The first value of that name; empty when there is none. A view into this block.
  std::string_view Find(std::string_view name) const;

  const std::vector<Field>& fields() const { return fields_; }
  std::string_view NameOf(const Field& field) const {
    return {text_.data() + field.name_at, field.name_size};
  }
  std::string_view ValueOf(const Field& field) const {
    return {text_.data() + field.name_at + field.name_size, field.value_size};
  }
  bool empty() const { return fields_.empty(); }
  // Bytes of all names and values.
  size_t size() const { return text_.size(); }

 private:
  std::string text_;
  std::vector<Field> fields_;
};

}  // namespace resmgr::h2
