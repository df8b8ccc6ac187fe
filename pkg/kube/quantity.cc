// SPDX-License-Identifier: Apache-2.0
#include "pkg/kube/quantity.h"

#include <array>
#include <cstdint>
#include <limits>
#include <optional>

#include "pkg/kube/quantity_number.h"

namespace resmgr {

namespace {

__extension__ using UnsignedWide = unsigned __int128;

// 10^38 < 2^127: larger powers of ten are never needed, because no numerator is larger.
constexpr int kMaxPower = 38;

UnsignedWide PowerOfTen(int exponent) {
  UnsignedWide power = 1;
  for (int i = 0; i < exponent; ++i)
    power *= 10;
  return power;
}

// number * 10^shift, rounded up; nullopt beyond 64 bits.
std::optional<int64_t> Scale(const QuantityNumber& number, int shift) {
  const int exponent = number.decimal_exponent + shift;
  UnsignedWide value = UnsignedWide{number.digits} << number.binary_exponent;
  if (value == 0) return 0;
  if (exponent < -kMaxPower) return 1;
  if (exponent > kMaxPower) return std::nullopt;
  if (exponent < 0) {
    const UnsignedWide divisor = PowerOfTen(-exponent);
    value = value / divisor + (value % divisor == 0 ? 0 : 1);
  } else if (__builtin_mul_overflow(value, PowerOfTen(exponent), &value)) {
    return std::nullopt;
  }
  if (value > UnsignedWide{std::numeric_limits<int64_t>::max()}) return std::nullopt;
  return static_cast<int64_t>(value);
}

StatusOr<int64_t> ParseScaled(std::string_view quantity, int shift) {
  RESMGR_ASSIGN_OR_RETURN(const QuantityNumber number, ParseQuantityNumber(quantity));
  const std::optional<int64_t> value = Scale(number, shift);
  if (!value) return NotAQuantity(quantity, "it is too large");
  return *value;
}

// Suffixes for powers of 1000, from 10^-9 on.
constexpr std::array<std::string_view, 10> kDecimalSuffixes = {"n", "u", "m", "",  "k",
                                                               "M", "G", "T", "P", "E"};
constexpr std::array<std::string_view, 7> kBinarySuffixes = {"",   "Ki", "Mi", "Gi",
                                                             "Ti", "Pi", "Ei"};
constexpr int kSmallestExponent = -9;
constexpr int kLargestExponent = 18;

std::string ToDecimal(UnsignedWide value) {
  std::string digits;
  do {
    digits.insert(digits.begin(), static_cast<char>('0' + static_cast<int>(value % 10)));
    value /= 10;
  } while (value != 0);
  return digits;
}

// mantissa * 10^exponent with the largest exponent that is a multiple of 3 and keeps the mantissa
// an integer, within the available suffixes. A rest below 10^-9 rounds up. nullopt beyond 128 bits.
std::optional<std::string> CanonicalDecimal(UnsignedWide mantissa, int exponent,
                                            QuantityForm form) {
  if (mantissa == 0) return "0";
  while (exponent < kSmallestExponent) {
    mantissa = mantissa / 10 + (mantissa % 10 == 0 ? 0 : 1);
    ++exponent;
  }
  for (; mantissa % 10 == 0; ++exponent)
    mantissa /= 10;
  const int largest = form == QuantityForm::kExponent ? exponent : kLargestExponent;
  for (; exponent % 3 != 0 || exponent > largest; --exponent) {
    if (__builtin_mul_overflow(mantissa, UnsignedWide{10}, &mantissa)) return std::nullopt;
  }
  if (form == QuantityForm::kExponent) {
    return exponent == 0 ? ToDecimal(mantissa)
                         : fmt::format("{}e{}", ToDecimal(mantissa), exponent);
  }
  const auto suffix = static_cast<size_t>((exponent - kSmallestExponent) / 3);
  return fmt::format("{}{}", ToDecimal(mantissa), kDecimalSuffixes[suffix]);
}

// As in Kubernetes, only values of 1024 or more keep a binary suffix, so that 0.5Ki does not round.
std::optional<std::string> CanonicalBinary(const QuantityNumber& number) {
  UnsignedWide value = UnsignedWide{number.digits} << number.binary_exponent;
  int exponent = number.decimal_exponent;
  if (exponent < -kMaxPower) return CanonicalDecimal(value, exponent, QuantityForm::kDecimal);
  const UnsignedWide divisor = PowerOfTen(-exponent);
  if (value / divisor < 1024) return CanonicalDecimal(value, exponent, QuantityForm::kDecimal);
  value = value / divisor + (value % divisor == 0 ? 0 : 1);
  size_t suffix = 0;
  for (; value % 1024 == 0 && suffix + 1 < kBinarySuffixes.size(); ++suffix)
    value /= 1024;
  return fmt::format("{}{}", ToDecimal(value), kBinarySuffixes[suffix]);
}

}  // namespace

StatusOr<MilliCpu> ParseMilliCpu(std::string_view quantity) {
  RESMGR_ASSIGN_OR_RETURN(const int64_t value, ParseScaled(quantity, 3));
  return MilliCpu{value};
}

StatusOr<Bytes> ParseBytes(std::string_view quantity) {
  RESMGR_ASSIGN_OR_RETURN(const int64_t value, ParseScaled(quantity, 0));
  return Bytes{value};
}

StatusOr<std::string> CanonicalQuantity(std::string_view quantity) {
  RESMGR_ASSIGN_OR_RETURN(const QuantityNumber number, ParseQuantityNumber(quantity));
  std::optional<std::string> text;
  if (number.form == QuantityForm::kBinary) {
    text = CanonicalBinary(number);
  } else {
    text = CanonicalDecimal(UnsignedWide{number.digits}, number.decimal_exponent, number.form);
  }
  if (!text) return NotAQuantity(quantity, "it is too large");
  return *std::move(text);
}

std::string FormatMilliCpu(MilliCpu value) {
  return value.Fraction() == 0 ? fmt::format("{}", value.Whole()) : fmt::format("{}m", value.value);
}

}  // namespace resmgr
