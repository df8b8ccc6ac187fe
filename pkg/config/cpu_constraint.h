// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "pkg/base/status.h"
#include "pkg/base/units.h"
#include "pkg/topology/cpu_set.h"

namespace resmgr {

// The available or reserved CPUs as the configuration describes them; pkg/policy/constraints.h
// resolves this on a machine.
struct CpuConstraint {
  enum class Kind { kSet, kAllBut, kQuantity, kCgroup };

  Kind kind = Kind::kSet;
  CpuSet cpus;         // for kSet and kAllBut
  MilliCpu quantity;   // for kQuantity, more than 0
  std::string cgroup;  // for kCgroup: the directory
  std::string origin;  // prefix of messages: "FILE:LINE: path" or a flag

  // The origin is ignored.
  friend bool operator==(const CpuConstraint& a, const CpuConstraint& b) {
    return a.kind == b.kind && a.cpus == b.cpus && a.quantity == b.quantity && a.cgroup == b.cgroup;
  }
};

// Parses the forms that users write:
//   cpuset:LIST, #LIST, a LIST with - or , in it    these CPUs ("0-3,8")
//   exclude-cpuset:LIST                             all possible ones except these
//   cgroup:DIR, /DIR                                the CPUs of that cgroup
//   quantity:Q, Q                                   a number of CPUs ("2", "750m")
// kInvalidArgument for anything else, an empty list and a quantity of 0.
StatusOr<CpuConstraint> ParseCpuConstraint(std::string_view text, std::string_view origin);

// A form that ParseCpuConstraint accepts.
std::string ToString(const CpuConstraint& constraint);

// The value of CPU in the form of the flags -available-resources and -reserved-resources:
// DOMAIN=VALUE[,...]. A comma that is not followed by DOMAIN= belongs to the value, so that lists
// of CPUs need no quoting. CPU is the only domain; kInvalidArgument for others, and for a second
// CPU.
StatusOr<std::string> CpuOfResources(std::string_view text);

}  // namespace resmgr
