// SPDX-License-Identifier: Apache-2.0
#include "pkg/kube/quantity.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>

#include <fmt/format.h>

#include "pkg/base/characters.h"
#include "pkg/base/parse.h"

namespace resmgr {
namespace {

// The written form of a quantity, which its canonical text keeps.
enum class QuantityForm { kDecimal, kBinary, kExponent };

// An exactly parsed quantity: digits * 10^decimal_exponent * 2^binary_exponent. At most 19 digits,
// and a binary exponent of at most 60, so that digits * 2^binary_exponent fits into 128 bits.
struct QuantityNumber {
  uint64_t digits = 0;
  int decimal_exponent = 0;
  int binary_exponent = 0;
  QuantityForm form = QuantityForm::kDecimal;
};

Status NotAQuantity(std::string_view text, std::string_view why) {
  return InvalidArgument("\"{}\" is not a quantity: {}", Printable(text, 64), why);
}

// 10^19 < 2^64, so that the digits, multiplied by the largest binary suffix (2^60), fit into 128
// bits.
constexpr size_t kMaxDigits = 19;
// Keeps sums of exponents far from overflow; 10^±1000 is out of every range anyway.
constexpr int64_t kMaxExponent = 1000;

// Suffixes for powers of 1000, from 10^-9 on, and for powers of 1024.
constexpr std::array<std::string_view, 10> kDecimalSuffixes = {"n", "u", "m", "",  "k",
                                                               "M", "G", "T", "P", "E"};
constexpr std::array<std::string_view, 7> kBinarySuffixes = {"",   "Ki", "Mi", "Gi",
                                                             "Ti", "Pi", "Ei"};
constexpr int kSmallestExponent = -9;
constexpr int kLargestExponent = 18;

std::string_view TakeDigits(std::string_view& text) {
  const auto end = std::find_if_not(text.begin(), text.end(), IsDigit);
  const std::string_view digits = text.substr(0, static_cast<size_t>(end - text.begin()));
  text.remove_prefix(digits.size());
  return digits;
}

bool ApplySuffix(std::string_view text, QuantityNumber& number) {
  if (const auto decimal = std::ranges::find(kDecimalSuffixes, text);
      decimal != kDecimalSuffixes.end()) {
    number.decimal_exponent +=
        kSmallestExponent + 3 * static_cast<int>(decimal - kDecimalSuffixes.begin());
    return true;
  }
  if (const auto binary = std::ranges::find(kBinarySuffixes, text);
      binary != kBinarySuffixes.end()) {
    number.binary_exponent = 10 * static_cast<int>(binary - kBinarySuffixes.begin());
    number.form = QuantityForm::kBinary;
    return true;
  }
  if (text.size() < 2 || (text[0] != 'e' && text[0] != 'E')) return false;
  text.remove_prefix(1);
  if (text[0] == '+' && text.size() > 1 && IsDigit(text[1])) text.remove_prefix(1);
  const std::optional<int64_t> exponent = ParseInt(text);
  if (!exponent) return false;
  number.decimal_exponent += static_cast<int>(std::clamp(*exponent, -kMaxExponent, kMaxExponent));
  number.form = QuantityForm::kExponent;
  return true;
}

StatusOr<QuantityNumber> ParseQuantityNumber(const std::string_view text) {
  std::string_view rest = text;
  if (rest.starts_with('-')) return NotAQuantity(text, "it must not be negative");
  if (rest.starts_with('+')) rest.remove_prefix(1);
  const std::string_view whole = TakeDigits(rest);
  std::string_view fraction;
  if (rest.starts_with('.')) {
    rest.remove_prefix(1);
    fraction = TakeDigits(rest);
  }
  if (whole.empty() && fraction.empty()) return NotAQuantity(text, "it must begin with a number");
  while (fraction.ends_with('0'))
    fraction.remove_suffix(1);

  std::string digits = std::string(whole) + std::string(fraction);
  digits.erase(0, std::min(digits.find_first_not_of('0'), digits.size()));
  if (digits.size() > kMaxDigits) return NotAQuantity(text, "it has too many digits");
  QuantityNumber number;
  number.digits = ParseUint(digits.empty() ? "0" : digits).value_or(0);
  number.decimal_exponent = -static_cast<int>(fraction.size());
  if (!ApplySuffix(rest, number)) {
    return NotAQuantity(text, fmt::format("no unit is called \"{}\"", Printable(rest, 16)));
  }
  return number;
}

__extension__ using UnsignedWide = unsigned __int128;

// 10^38 < 2^127. Larger powers of ten are not needed, because no numerator is larger.
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

std::string ToDecimal(UnsignedWide value) {
  std::string digits;
  do {
    digits.insert(digits.begin(), static_cast<char>('0' + static_cast<int>(value % 10)));
    value /= 10;
  } while (value != 0);
  return digits;
}

// mantissa * 10^exponent with the largest exponent that is a multiple of 3 and keeps the mantissa
// an integer, within the available suffixes. A remainder below 10^-9 rounds up. nullopt beyond 128
// bits.
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

using std::chrono::milliseconds;

struct Unit {
  std::string_view name;
  milliseconds length;
};

// "ms" must precede "m", with which it begins.
constexpr std::array<Unit, 4> kUnits = {{{"h", std::chrono::hours(1)},
                                         {"ms", milliseconds(1)},
                                         {"m", std::chrono::minutes(1)},
                                         {"s", std::chrono::seconds(1)}}};

// The part of the unit that these digits behind a decimal point mean.
milliseconds FractionOf(milliseconds unit, std::string_view digits) {
  // Nine places tell an hour to the microsecond, and 64 bits hold their product with it.
  int64_t numerator = 0;
  int64_t denominator = 1;
  for (const char digit : digits.substr(0, 9)) {
    numerator = numerator * 10 + (digit - '0');
    denominator *= 10;
  }
  return unit * numerator / denominator;
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

StatusOr<Bytes> ParseConfiguredBytes(std::string_view quantity) {
  StatusOr<Bytes> bytes = ParseBytes(quantity);
  if (!bytes.ok()) return bytes;
  if (quantity.find_last_of("mun") != std::string_view::npos) {
    return NotAQuantity(quantity, "m means thousandths of a byte, and M millions");
  }
  const bool part = bytes->value == 1 && ParseMilliCpu(quantity).value_or(MilliCpu{}).value < 1000;
  if (part) return NotAQuantity(quantity, "it is less than a byte");
  return bytes;
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

std::optional<milliseconds> ParseDuration(std::string_view text, milliseconds longest) {
  if (text.empty()) return std::nullopt;
  if (text == "0") return milliseconds(0);
  milliseconds left = longest;
  while (!text.empty()) {
    const std::string_view whole = TakeDigits(text);
    std::string_view fraction;
    if (text.starts_with('.')) {
      text.remove_prefix(1);
      fraction = TakeDigits(text);
    }
    const std::optional<int64_t> count = whole.empty() && !fraction.empty() ? 0 : ParseInt(whole);
    const auto unit = std::find_if(kUnits.begin(), kUnits.end(), [text](const Unit& each) {
      return text.starts_with(each.name);
    });
    if (!count || unit == kUnits.end() || *count > left / unit->length) return std::nullopt;
    left -= *count * unit->length;
    const milliseconds part = FractionOf(unit->length, fraction);
    if (part > left) return std::nullopt;
    left -= part;
    text.remove_prefix(unit->name.size());
  }
  return longest - left;
}

std::string DurationText(milliseconds duration) {
  constexpr std::array<std::string_view, 4> kLargestFirst = {"h", "m", "s", "ms"};
  for (const std::string_view name : kLargestFirst) {
    const milliseconds unit = std::find_if(kUnits.begin(), kUnits.end(), [name](const Unit& each) {
                                return each.name == name;
                              })->length;
    if (duration % unit == milliseconds(0) && duration >= unit) {
      return fmt::format("{}{}", duration / unit, name);
    }
  }
  return "0s";
}

}  // namespace resmgr
