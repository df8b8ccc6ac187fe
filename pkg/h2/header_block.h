// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

struct nghttp2_rcbuf;

namespace resmgr::h2 {

// The header fields of one HEADERS frame, in the order in which they came. Fields that were
// received stay in the memory of the HPACK decoder (reference-counted there), so relaying them
// copies nothing.
class HeaderBlock {
 public:
  HeaderBlock() = default;
  HeaderBlock(HeaderBlock&& other) noexcept : fields_(std::move(other.fields_)) {
    other.fields_.clear();
  }
  HeaderBlock& operator=(HeaderBlock&& other) noexcept {
    fields_.swap(other.fields_);
    return *this;
  }
  HeaderBlock(const HeaderBlock&) = delete;
  HeaderBlock& operator=(const HeaderBlock&) = delete;
  ~HeaderBlock();

  struct Field {
    std::string_view name;
    std::string_view value;
    bool never_index = false;  // the sender asked that no hop puts it into a compression table
    nghttp2_rcbuf* name_ref = nullptr;  // null where the text is in `owned`
    nghttp2_rcbuf* value_ref = nullptr;
    std::unique_ptr<char[]> owned;
  };

  // Keeps a copy of both texts. Names are lower case.
  void Add(std::string_view name, std::string_view value);
  // Takes a further reference on both buffers.
  void AddReceived(nghttp2_rcbuf* name, nghttp2_rcbuf* value, bool never_index);
  // Removes all fields of that name.
  void Remove(std::string_view name);

  // The first value of that name; empty when there is none.
  std::string_view Find(std::string_view name) const;
  const std::vector<Field>& fields() const { return fields_; }
  bool empty() const { return fields_.empty(); }

 private:
  static void Release(const Field& field);

  std::vector<Field> fields_;
};

}  // namespace resmgr::h2
