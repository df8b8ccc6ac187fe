// SPDX-License-Identifier: Apache-2.0
#include "pkg/h2/header_block.h"

#include <algorithm>
#include <cstring>

#include <nghttp2/nghttp2.h>

namespace resmgr::h2 {

namespace {

std::string_view View(nghttp2_rcbuf* buffer) {
  const nghttp2_vec bytes = nghttp2_rcbuf_get_buf(buffer);
  return {reinterpret_cast<const char*>(bytes.base), bytes.len};
}

}  // namespace

HeaderBlock::~HeaderBlock() {
  for (const Field& field : fields_)
    Release(field);
}

void HeaderBlock::Release(const Field& field) {
  if (field.name_ref != nullptr) nghttp2_rcbuf_decref(field.name_ref);
  if (field.value_ref != nullptr) nghttp2_rcbuf_decref(field.value_ref);
}

void HeaderBlock::Add(std::string_view name, std::string_view value) {
  Field field;
  field.owned = std::make_unique<char[]>(name.size() + value.size());
  std::memcpy(field.owned.get(), name.data(), name.size());
  if (!value.empty()) std::memcpy(field.owned.get() + name.size(), value.data(), value.size());
  field.name = {field.owned.get(), name.size()};
  field.value = {field.owned.get() + name.size(), value.size()};
  fields_.push_back(std::move(field));
}

void HeaderBlock::AddReceived(nghttp2_rcbuf* name, nghttp2_rcbuf* value, bool never_index) {
  if (fields_.empty()) fields_.reserve(10);
  nghttp2_rcbuf_incref(name);
  nghttp2_rcbuf_incref(value);
  fields_.push_back(Field{.name = View(name),
                          .value = View(value),
                          .never_index = never_index,
                          .name_ref = name,
                          .value_ref = value,
                          .owned = nullptr});
}

void HeaderBlock::Remove(std::string_view name) {
  const auto first = std::remove_if(fields_.begin(), fields_.end(), [name](const Field& field) {
    if (field.name != name) return false;
    Release(field);
    return true;
  });
  fields_.erase(first, fields_.end());
}

std::string_view HeaderBlock::Find(std::string_view name) const {
  for (const Field& field : fields_) {
    if (field.name == name) return field.value;
  }
  return {};
}

}  // namespace resmgr::h2
