// SPDX-License-Identifier: Apache-2.0
#include "pkg/policy/registry.h"

#include <algorithm>

namespace resmgr {

PolicyRegistry::PolicyRegistry(std::span<const PolicyFactory> factories)
    : factories_(factories.begin(), factories.end()) {}

std::vector<std::string> PolicyRegistry::Names() const {
  std::vector<std::string> names;
  for (const PolicyFactory& factory : factories_)
    names.emplace_back(factory.name);
  return names;
}

const PolicyFactory* PolicyRegistry::Find(std::string_view name) const {
  const auto found =
      std::find_if(factories_.begin(), factories_.end(),
                   [name](const PolicyFactory& factory) { return factory.name == name; });
  return found == factories_.end() ? nullptr : &*found;
}

StatusOr<std::unique_ptr<Policy>> PolicyRegistry::Create(std::string_view name,
                                                         const PolicyContext& context) const {
  const PolicyFactory* const factory = Find(name);
  if (factory == nullptr) {
    return NotFound("no policy {}, there are: {}", name, fmt::join(Names(), ", "));
  }
  return factory->create(context);
}

}  // namespace resmgr
