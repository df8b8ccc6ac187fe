// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "pkg/base/status.h"
#include "pkg/claims/claim.h"
#include "pkg/dra/driver.h"

namespace resmgr::dra {

// A claim as the kubelet names it.
struct ClaimName {
  std::string uid{};
  std::string namespace_name{};
  std::string name{};

  std::string ToString() const { return namespace_name + "/" + name; }
  friend bool operator==(const ClaimName&, const ClaimName&) = default;
};

// Facts about one part of a claim that go back to the kubelet.
struct ClaimDeviceRef {
  std::string request{};  // the request's name, "main/sub" for one of a prioritized list
  std::string pool{};
  std::string share_id{};  // "": the device is not shared

  friend bool operator==(const ClaimDeviceRef&, const ClaimDeviceRef&) = default;
};

struct AllocatedClaim {
  Claim claim{};
  std::vector<ClaimDeviceRef> devices{};  // one for each part of the claim, in order
};

// Longest accepted object in bytes; the API server stores no larger ones.
inline constexpr size_t kLongestClaimObject = size_t{3} << 20;
// Limit of an allocation's results, of all drivers together, in the API.
inline constexpr size_t kMostClaimResults = 32;
// Limit of the pods that a claim is reserved for, in the API.
inline constexpr size_t kMostClaimPods = 256;
// `apiVersion` and `kind` of a claim's parameters for our driver, which otherwise have the fields
// of ClaimOptions, `shareWithin: pod` among them.
inline constexpr std::string_view kParametersVersion = "cri-resource-manager.intel.com/v1";
inline constexpr std::string_view kParametersKind = "CpuClaim";

// Reads a ResourceClaim (resource.k8s.io/v1, JSON) as far as its allocation concerns this driver;
// results of other drivers are left out, and there may be none of ours. Pure, for untrusted text.
//   kInvalidArgument     not such an object, or an allocation that we can never serve
//   kFailedPrecondition  it is another claim than the asked one, or it is not allocated
StatusOr<AllocatedClaim> ParseClaimObject(std::string_view text, const ClaimName& asked,
                                          const Driver& driver);

// Returns why no pod uses a claim that holds CPUs, as a part of a sentence; "" if a pod may use it.
// `text` is the API server's object of that name, which may be another claim. Pure, for untrusted
// text. kInvalidArgument: it is not such an object.
StatusOr<std::string> WhyUnused(std::string_view text, const ClaimName& asked);

}  // namespace resmgr::dra
