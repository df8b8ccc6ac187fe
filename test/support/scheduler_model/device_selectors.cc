// SPDX-License-Identifier: Apache-2.0
#include "test/support/scheduler_model/device_selectors.h"

#include <stdexcept>

#include "pkg/base/json.h"

namespace resmgr::test {
namespace {

std::string_view Trimmed(std::string_view text) {
  while (text.starts_with(' '))
    text.remove_prefix(1);
  while (text.ends_with(' '))
    text.remove_suffix(1);
  return text;
}

bool MatchesTerm(const PoolDevice& device, std::string_view term) {
  const std::invalid_argument unknown("selector is not modelled: " + std::string(term));
  const size_t equals = term.find("==");
  if (equals == std::string_view::npos) throw unknown;
  std::string_view left = Trimmed(term.substr(0, equals));
  const std::optional<nlohmann::json> right = ParseJson(Trimmed(term.substr(equals + 2)));
  if (!right) throw unknown;
  if (left == "device.driver") return *right == device.driver;
  constexpr std::string_view kAttributes = "device.attributes[\"";
  constexpr std::string_view kEnd = "\"].";
  if (!left.starts_with(kAttributes)) throw unknown;
  left.remove_prefix(kAttributes.size());
  const size_t end = left.find(kEnd);
  if (end == std::string_view::npos) throw unknown;
  const std::string name =
      std::string(left.substr(0, end)) + "/" + std::string(left.substr(end + kEnd.size()));
  const auto found = device.attributes.find(name);
  return found != device.attributes.end() && found->second.begin().value() == *right;
}

}  // namespace

bool MatchesSelector(const PoolDevice& device, std::string_view expression) {
  while (true) {
    const size_t joint = expression.find("&&");
    if (!MatchesTerm(device, Trimmed(expression.substr(0, joint)))) return false;
    if (joint == std::string_view::npos) return true;
    expression.remove_prefix(joint + 2);
  }
}

}  // namespace resmgr::test
