// SPDX-License-Identifier: Apache-2.0
#include "pkg/topology/numa_stat.h"

#include <unistd.h>

#include "pkg/base/parse.h"
#include "pkg/topology/cpu_set.h"

namespace resmgr {
namespace {

// Reads "N0=4096 N1=0".
std::map<int, int64_t> ParseNodes(std::string_view line, int64_t unit) {
  std::map<int, int64_t> found;
  for (const std::string_view word : Split(line, ' ')) {
    const size_t equals = word.find('=');
    if (!word.starts_with('N') || equals == std::string_view::npos) continue;
    const auto node = ParseInt(word.substr(1, equals - 1));
    const auto amount = ParseInt(word.substr(equals + 1));
    if (!node || !amount || *node < 0 || *node > NodeSet::kMaxId) continue;
    int64_t bytes = 0;
    if (*amount < 0 || __builtin_mul_overflow(*amount, unit, &bytes)) continue;
    found[static_cast<int>(*node)] = bytes;
  }
  return found;
}

}  // namespace

std::map<int, int64_t> NumaStat::All() const {
  std::map<int, int64_t> all = anonymous;
  for (const auto& [node, bytes] : files) {
    int64_t& sum = all[node];
    if (__builtin_add_overflow(sum, bytes, &sum)) sum = bytes;
  }
  return all;
}

NumaStat ParseNumaStat(std::string_view text, bool unified, bool below) {
  constexpr std::string_view kBelow = "hierarchical_";
  const int64_t unit = unified ? 1 : ::sysconf(_SC_PAGESIZE);
  NumaStat stat;
  for (std::string_view line : Split(text, '\n')) {
    const std::string_view key = line.substr(0, line.find_first_of(unified ? " " : "="));
    const bool is_below = key.starts_with(kBelow);
    const std::string_view kind = is_below ? key.substr(kBelow.size()) : key;
    if (!unified && is_below != below) continue;
    if (kind == "anon") stat.anonymous = ParseNodes(line.substr(key.size()), unit);
    if (kind == "file") stat.files = ParseNodes(line.substr(key.size()), unit);
  }
  return stat;
}

}  // namespace resmgr
