// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstdint>

namespace resmgr {

// Thousandths of one CPU's time. 1500 is one CPU and a half.
struct MilliCpu {
  int64_t value = 0;

  // The whole CPUs of the amount: 1 for 1500.
  constexpr int64_t Whole() const { return value / 1000; }
  // The rest above the whole CPUs: 500 for 1500.
  constexpr int64_t Fraction() const { return value % 1000; }
  constexpr bool IsWhole() const { return value > 0 && Fraction() == 0; }

  friend constexpr auto operator<=>(MilliCpu, MilliCpu) = default;
  friend constexpr MilliCpu operator+(MilliCpu a, MilliCpu b) { return {a.value + b.value}; }
  friend constexpr MilliCpu operator-(MilliCpu a, MilliCpu b) { return {a.value - b.value}; }
};

// An amount of memory in bytes.
struct Bytes {
  int64_t value = 0;

  friend constexpr auto operator<=>(Bytes, Bytes) = default;
  friend constexpr Bytes operator+(Bytes a, Bytes b) { return {a.value + b.value}; }
  friend constexpr Bytes operator-(Bytes a, Bytes b) { return {a.value - b.value}; }
};

}  // namespace resmgr
