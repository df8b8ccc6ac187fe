// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "pkg/base/status.h"
#include "pkg/base/units.h"
#include "pkg/topology/cpu_set.h"

namespace resmgr {

// Which CPUs are available to the policies, or reserved, as the configuration says it; what that is
// on a machine is pkg/policy/constraints.h.
struct CpuConstraint {
  enum class Kind { kSet, kAllBut, kQuantity, kCgroup };

  Kind kind = Kind::kSet;
  CpuSet cpus;         // kSet, kAllBut
  MilliCpu quantity;   // kQuantity, more than 0
  std::string cgroup;  // kCgroup: the directory
  std::string origin;  // what to put before messages about it: "FILE:LINE: path" or a flag

  // The origin does not count.
  friend bool operator==(const CpuConstraint& a, const CpuConstraint& b) {
    return a.kind == b.kind && a.cpus == b.cpus && a.quantity == b.quantity && a.cgroup == b.cgroup;
  }
};

// The forms that users write:
//   cpuset:LIST, #LIST, a LIST with - or , in it    these CPUs ("0-3,8")
//   exclude-cpuset:LIST                             all that could be meant, but these
//   cgroup:DIR, /DIR                                the CPUs of that cgroup
//   quantity:Q, Q                                   so many CPUs ("2", "750m")
// InvalidArgument for anything else, an empty list and a quantity of 0.
StatusOr<CpuConstraint> ParseCpuConstraint(std::string_view text, std::string_view origin);

// A form that ParseCpuConstraint reads back.
std::string ToString(const CpuConstraint& constraint);

// The value of the flags -available-resources and -reserved-resources: DOMAIN=VALUE[,...]. A comma
// without a new DOMAIN= behind it belongs to the value, so that lists of CPUs need no quoting. CPU
// is the only domain; InvalidArgument for others, and for CPU twice.
StatusOr<CpuConstraint> ParseResourcesFlag(std::string_view text, std::string_view origin);

}  // namespace resmgr
