// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace resmgr::h2 {

// The header fields of one HEADERS frame (RFC 9113 section 6.2), in order. A value; copies share
// their memory until one of them is changed, because the same block passes the relay again and
// again. Not thread-safe, not even for copies: the reference count is a plain integer.
class HeaderBlock {
 public:
  HeaderBlock() = default;
  HeaderBlock(const HeaderBlock& other) : fields_(other.fields_) {
    if (fields_ != nullptr) ++fields_->references;
  }
  HeaderBlock(HeaderBlock&& other) noexcept : fields_(std::exchange(other.fields_, nullptr)) {}
  HeaderBlock& operator=(HeaderBlock other) noexcept {
    std::swap(fields_, other.fields_);
    return *this;
  }
  ~HeaderBlock() {
    if (fields_ != nullptr && --fields_->references == 0) Free(fields_);
  }

  struct Field {
    uint32_t name_at = 0;
    uint32_t name_size = 0;
    uint32_t value_size = 0;   // the value follows the name in memory
    bool never_index = false;  // never indexed by any hop (RFC 7541 section 6.2.3)

    friend bool operator==(const Field&, const Field&) = default;
  };

  // Names are lower case.
  void Add(std::string_view name, std::string_view value, bool never_index = false);
  // Removes all fields of that name.
  void Remove(std::string_view name);

  // The first value of that name; empty if there is none. The view is valid until the block is
  // changed or destroyed.
  std::string_view Find(std::string_view name) const;

  const std::vector<Field>& fields() const;
  std::string_view NameOf(const Field& field) const {
    return {fields_->text.data() + field.name_at, field.name_size};
  }
  std::string_view ValueOf(const Field& field) const {
    return {fields_->text.data() + field.name_at + field.name_size, field.value_size};
  }
  // Whether both are copies of one block, without comparing the fields.
  bool SameMemory(const HeaderBlock& other) const { return fields_ == other.fields_; }
  // Whether the block has copies, for example in a connection that remembers it.
  bool shared() const { return fields_ != nullptr && fields_->references > 1; }
  bool empty() const { return fields_ == nullptr || fields_->fields.empty(); }
  // Bytes of memory, shared ones included.
  size_t memory() const { return fields_ == nullptr ? 0 : fields_->size(); }

  friend bool operator==(const HeaderBlock& a, const HeaderBlock& b);

 private:
  struct Fields {
    size_t references = 1;
    size_t counted = 0;  // bytes counted in Memory
    std::string text;
    std::vector<Field> fields;

    size_t size() const {
      return sizeof(Fields) + text.capacity() + fields.capacity() * sizeof(Field);
    }
  };
  static void Free(Fields* fields);
  static void Count(Fields& fields);
  // The fields for a change: not shared with another block.
  Fields& Own();

  Fields* fields_ = nullptr;
};

}  // namespace resmgr::h2
