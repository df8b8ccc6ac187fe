// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <string>
#include <vector>

namespace resmgr {

// Namespace and name of a pod.
struct PodName {
  std::string namespace_name{};
  std::string name{};

  friend auto operator<=>(const PodName&, const PodName&) = default;
};

// A text by which a scheduler checks whether an object was made for the pods that the scheduler
// knows on the node: "pfp0v001" and 16 hexadecimal digits. The order of the pods has no effect; a
// pod that is listed twice counts twice. The algorithm is that of
// k8stopologyawareschedwg/podfingerprint, version v001: XXH64 of each name with the hash of its
// namespace as seed, sorted as numbers, and XXH64 of their little-endian bytes. Pure.
std::string PodFingerprint(const std::vector<PodName>& pods);

}  // namespace resmgr
