// SPDX-License-Identifier: Apache-2.0
#include "pkg/h2/header_block.h"

#include <algorithm>
#include <utility>

#include "pkg/h2/memory.h"

namespace resmgr::h2 {

namespace {

// The usual number of fields of a gRPC request.
constexpr size_t kUsualFields = 12;
constexpr size_t kUsualText = 384;

}  // namespace

HeaderBlock::Fields& HeaderBlock::Own() {
  if (fields_ == nullptr) {
    fields_ = new Fields;
    fields_->fields.reserve(kUsualFields);
    fields_->text.reserve(kUsualText);
    Count(*fields_);
  } else if (fields_->references > 1) {
    --fields_->references;
    fields_ = new Fields(*fields_);
    fields_->references = 1;
    fields_->counted = 0;
    Count(*fields_);
  }
  return *fields_;
}

void HeaderBlock::Count(Fields& fields) {
  const size_t now = fields.size();
  Memory::Add(now);
  Memory::Sub(std::exchange(fields.counted, now));
}

void HeaderBlock::Free(Fields* fields) {
  Memory::Sub(fields->counted);
  delete fields;
}

void HeaderBlock::Add(std::string_view name, std::string_view value, bool never_index) {
  Fields& own = Own();
  own.fields.push_back({.name_at = static_cast<uint32_t>(own.text.size()),
                        .name_size = static_cast<uint32_t>(name.size()),
                        .value_size = static_cast<uint32_t>(value.size()),
                        .never_index = never_index});
  own.text.append(name);
  own.text.append(value);
  if (own.counted != own.size()) Count(own);
}

void HeaderBlock::Remove(std::string_view name) {
  const auto has_name = [&](const Field& field) { return NameOf(field) == name; };
  if (std::ranges::none_of(fields(), has_name)) return;
  std::erase_if(Own().fields, has_name);
}

const std::vector<HeaderBlock::Field>& HeaderBlock::fields() const {
  static const std::vector<Field>* const kNone = new std::vector<Field>();
  return fields_ == nullptr ? *kNone : fields_->fields;
}

std::string_view HeaderBlock::Find(std::string_view name) const {
  for (const Field& field : fields()) {
    if (NameOf(field) == name) return ValueOf(field);
  }
  return {};
}

bool operator==(const HeaderBlock& a, const HeaderBlock& b) {
  if (a.SameMemory(b)) return true;
  return a.fields_ != nullptr && b.fields_ != nullptr && a.fields_->text == b.fields_->text &&
         a.fields_->fields == b.fields_->fields;
}

}  // namespace resmgr::h2
