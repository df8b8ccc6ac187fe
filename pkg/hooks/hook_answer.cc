// SPDX-License-Identifier: Apache-2.0
#include "pkg/hooks/hook_answer.h"

#include <utility>

#include "pkg/api/runtimehook.pb.h"
#include "pkg/base/wire.h"

namespace resmgr::hooks {
namespace {

using HookResponse = ::runtime::v1alpha1::ContainerResourceHookResponse;
using Variable = std::pair<std::string_view, std::string_view>;

// Parses an entry of a map of strings. nullopt: it has further fields.
std::optional<Variable> ReadEntry(std::string_view entry) {
  Variable variable;
  WireReader reader(entry);
  while (reader.Next()) {
    if (!reader.is_bytes() || reader.field() > 2) return std::nullopt;
    (reader.field() == 1 ? variable.first : variable.second) = reader.bytes();
  }
  if (reader.failed()) return std::nullopt;
  return variable;
}

}  // namespace

std::optional<std::string> WithoutRepeatedEnvironment(std::string_view answer, SentVariables sent) {
  std::string rest;
  const char* start = answer.data();
  WireReader reader(answer);
  while (reader.Next()) {
    const char* const end = reader.rest().data();
    const std::string_view field(start, static_cast<size_t>(end - start));
    start = end;
    if (reader.field() != HookResponse::kContainerEnvsFieldNumber) {
      rest.append(field);
      continue;
    }
    const auto variable = reader.is_bytes() ? ReadEntry(reader.bytes()) : std::nullopt;
    if (!variable) return std::nullopt;
    const auto found = sent.find(variable->first);
    if (found == sent.end() || found->second != variable->second) return std::nullopt;
    // Removed, so that a repeated variable cannot stand for a missing one.
    sent.erase(found);
  }
  if (reader.failed() || !sent.empty()) return std::nullopt;
  return rest;
}

}  // namespace resmgr::hooks
