// SPDX-License-Identifier: Apache-2.0
#include "pkg/claims/claim.h"

#include <algorithm>

namespace resmgr {
namespace {

CpuSet Together(const std::vector<CpuSet>& parts) {
  CpuSet all;
  for (const CpuSet& part : parts)
    all |= part;
  return all;
}

}  // namespace

bool Claim::IsFor(std::string_view pod_uid) const {
  return pods.empty() || std::ranges::find(pods, pod_uid) != pods.end();
}

bool Claim::AsksAs(const Claim& other) const {
  return uid == other.uid && namespace_name == other.namespace_name && name == other.name &&
         parts == other.parts && options == other.options;
}

CpuSet ClaimGrant::All() const {
  return Together(cpus);
}

CpuSet ClaimGrant::Seen() const {
  return Together(seen.empty() ? cpus : seen);
}

}  // namespace resmgr
