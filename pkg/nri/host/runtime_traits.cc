// SPDX-License-Identifier: Apache-2.0
#include "pkg/nri/host/runtime_traits.h"

#include <compare>
#include <cstdint>
#include <optional>

#include "pkg/base/parse.h"

namespace resmgr::nri {
namespace {

struct Release {
  uint64_t major = 0;
  uint64_t minor = 0;
  friend auto operator<=>(const Release&, const Release&) = default;
};

// "v1.6.20~ds1", "1.30.0".
std::optional<Release> ReleaseOf(std::string_view version) {
  if (version.starts_with('v')) version.remove_prefix(1);
  const auto parts = Split(version, '.');
  if (parts.size() < 2) return std::nullopt;
  const auto major = ParseUint(parts[0]);
  const auto minor = ParseUint(parts[1].substr(0, parts[1].find_first_not_of("0123456789")));
  if (!major || !minor) return std::nullopt;
  return Release{.major = *major, .minor = *minor};
}

}  // namespace

RuntimeTraits TraitsOf(std::string_view name, std::string_view version, bool cgroup_v2) {
  RuntimeTraits traits{.cgroup_v2 = cgroup_v2};
  if (name == "docker") {
    traits.cdi = RuntimeTraits::Cdi::kNone;
    traits.recursive_read_only = false;
    // It has fields of its own for what unified is taken for.
    traits.cgroup_v2 = true;
    return traits;
  }
  const auto release = ReleaseOf(version);
  if (!release) return traits;
  if (name == "containerd") {
    if (*release < Release{1, 7}) traits.cdi = RuntimeTraits::Cdi::kNone;
    traits.recursive_read_only = *release >= Release{2, 0};
  } else if (name == "cri-o") {
    if (*release < Release{1, 27}) traits.cdi = RuntimeTraits::Cdi::kAnnotation;
    if (*release < Release{1, 23}) traits.cdi = RuntimeTraits::Cdi::kNone;
    traits.recursive_read_only = *release >= Release{1, 30};
  }
  return traits;
}

}  // namespace resmgr::nri
