// SPDX-License-Identifier: Apache-2.0
#include "pkg/topology/synthetic_description.h"

#include <algorithm>
#include <cstdint>
#include <optional>

#include "pkg/base/characters.h"
#include "pkg/base/parse.h"
#include "pkg/topology/cpu_set.h"

namespace resmgr {
namespace {

// Reads a description from left to right: levels ("core:4", "4"), memory beside a level
// ("[numa(memory=1GiB)]"), and attributes in parentheses.
class Description {
 public:
  explicit Description(std::string_view text) : rest_(text) {}

  // The product of all levels, at most one more than a CpuSet holds; nullopt if a part is none of
  // the above.
  std::optional<int64_t> CountCpus() {
    int64_t cpus = 1;
    while (!rest_.empty()) {
      bool known = true;
      if (IsSpace(rest_.front())) {
        rest_.remove_prefix(1);
      } else if (rest_.front() == '[') {
        known = TakeMemory();
      } else if (rest_.front() == '(') {
        known = TakeAttributes();
      } else {
        const std::optional<int64_t> count = TakeLevel();
        known = count.has_value();
        cpus = std::min(cpus * count.value_or(1), kMost);
      }
      if (!known) return std::nullopt;
    }
    return cpus;
  }

 private:
  static constexpr int64_t kMost = CpuSet::kBits + 1;

  static bool IsSpace(char c) { return c == ' ' || c == '\n'; }

  // Takes the bracket at the front and all up to the next one, which it returns; '\0': there is
  // none. The next bracket stays.
  char TakeToBracket() {
    const size_t at = rest_.find_first_of("()[]", 1);
    rest_.remove_prefix(std::min(at, rest_.size()));
    return rest_.empty() ? '\0' : rest_.front();
  }
  bool TakeAttributes() {
    if (TakeToBracket() != ')') return false;
    rest_.remove_prefix(1);
    return true;
  }
  bool TakeMemory() {
    if (TakeToBracket() == '(' && !TakeAttributes()) return false;
    if (!rest_.starts_with(']')) return false;
    rest_.remove_prefix(1);
    return true;
  }

  // Numbers that are too large for ParseInt count as `kMost`. hwloc refuses 0.
  std::optional<int64_t> TakeLevel() {
    const std::string_view level = rest_.substr(0, rest_.find_first_of(" \n(["));
    rest_.remove_prefix(level.size());
    const size_t colon = level.find(':');
    const std::string_view number =
        colon == std::string_view::npos ? level : level.substr(colon + 1);
    if (number.empty() || !std::ranges::all_of(number, IsDigit)) return std::nullopt;
    return std::clamp<int64_t>(ParseInt(number).value_or(kMost), 1, kMost);
  }

  std::string_view rest_;
};

}  // namespace

Status CheckSynthetic(std::string_view description) {
  const std::optional<int64_t> cpus = Description(description).CountCpus();
  if (!cpus) {
    return InvalidArgument(
        "synthetic description '{}': each level is a name and a number, as in 'package:2 core:4 "
        "pu:2'",
        Printable(description));
  }
  if (*cpus > CpuSet::kBits) {
    return InvalidArgument("synthetic description '{}' has more than {} CPUs",
                           Printable(description), CpuSet::kBits);
  }
  return OkStatus();
}

}  // namespace resmgr
