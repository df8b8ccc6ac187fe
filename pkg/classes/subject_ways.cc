// SPDX-License-Identifier: Apache-2.0
#include "pkg/classes/subject_ways.h"

#include <algorithm>
#include <array>

namespace resmgr {
namespace {

constexpr std::array<std::string_view, 3> kWays = {kAtCreation, "before start", "after start"};

}  // namespace

std::string_view SubjectWays::Of(const ClassSubject& subject, bool there) {
  const std::string_view now = there ? kAtCreation : subject.running ? kWays[2] : kWays[1];
  if (subject.id.empty()) return now;
  if (const std::string* const kept = ways_.Find(subject.id); kept != nullptr) {
    const auto* const known = std::ranges::find(kWays, *kept);
    if (known != kWays.end()) return *known;
  }
  ways_.Set(subject.id, std::string(now));
  return now;
}

}  // namespace resmgr
