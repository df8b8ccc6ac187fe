// SPDX-License-Identifier: Apache-2.0
#include "pkg/model/environment.h"

namespace resmgr {

Environment::Environment(std::initializer_list<EnvironmentVariable> variables) {
  for (const EnvironmentVariable& variable : variables)
    Add(variable.name, variable.value);
}

void Environment::Add(std::string_view name, std::string_view value) {
  places_.push_back({.begin = static_cast<uint32_t>(texts_.size()),
                     .name_size = static_cast<uint32_t>(name.size()),
                     .size = static_cast<uint32_t>(name.size() + 1 + value.size())});
  texts_.append(name);
  texts_.push_back('=');
  texts_.append(value);
}

void Environment::AddText(std::string_view text) {
  const size_t equals = text.find('=');
  if (equals == std::string_view::npos) return Add(text, "");
  Add(text.substr(0, equals), text.substr(equals + 1));
}

void Environment::Reserve(size_t variables, size_t bytes) {
  places_.reserve(variables);
  texts_.reserve(variables + bytes);
}

EnvironmentVariable Environment::operator[](size_t index) const {
  const std::string_view text = Text(index);
  const size_t name_size = places_[index].name_size;
  return {.name = text.substr(0, name_size), .value = text.substr(name_size + 1)};
}

std::string_view Environment::Text(size_t index) const {
  const Place& place = places_[index];
  return std::string_view(texts_).substr(place.begin, place.size);
}

}  // namespace resmgr
