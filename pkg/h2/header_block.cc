// SPDX-License-Identifier: Apache-2.0
#include "pkg/h2/header_block.h"

namespace resmgr::h2 {

namespace {

// What a gRPC request has.
constexpr size_t kUsualFields = 12;
constexpr size_t kUsualText = 384;

}  // namespace

void HeaderBlock::Add(std::string_view name, std::string_view value, bool never_index) {
  if (fields_.empty()) {
    fields_.reserve(kUsualFields);
    text_.reserve(kUsualText);
  }
  fields_.push_back({.name_at = static_cast<uint32_t>(text_.size()),
                     .name_size = static_cast<uint32_t>(name.size()),
                     .value_size = static_cast<uint32_t>(value.size()),
                     .never_index = never_index});
  text_.append(name);
  text_.append(value);
}

void HeaderBlock::Remove(std::string_view name) {
  std::erase_if(fields_, [&](const Field& field) { return NameOf(field) == name; });
}

void HeaderBlock::Clear() {
  fields_.clear();
  text_.clear();
}

std::string_view HeaderBlock::Find(std::string_view name) const {
  for (const Field& field : fields_) {
    if (NameOf(field) == name) return ValueOf(field);
  }
  return {};
}

}  // namespace resmgr::h2
