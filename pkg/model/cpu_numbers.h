// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

namespace resmgr {

using CpuNumber = std::optional<int64_t>;

// Calls `visit` for the CPU shares, then for the quota and for the period, each time with that
// number of all `values` (ResourceValues, LinuxResources, NumbersSetLater) in their order.
template <typename Visit, typename... Values>
void ForEachCpuNumber(const Visit& visit, Values&... values) {
  visit(values.cpu_shares...);
  visit(values.cpu_quota...);
  visit(values.cpu_period...);
}

template <typename Values>
bool HasCpuNumbers(const Values& values) {
  return values.cpu_shares || values.cpu_quota || values.cpu_period;
}

template <typename Values, typename Others>
bool SameCpuNumbers(const Values& values, const Others& others) {
  return values.cpu_shares == others.cpu_shares && values.cpu_quota == others.cpu_quota &&
         values.cpu_period == others.cpu_period;
}

template <typename From, typename To>
void CopyCpuNumbers(const From& from, To& to) {
  ForEachCpuNumber([](const CpuNumber& number, CpuNumber& copy) { copy = number; }, from, to);
}

}  // namespace resmgr
