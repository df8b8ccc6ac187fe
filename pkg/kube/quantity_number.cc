// SPDX-License-Identifier: Apache-2.0
#include "pkg/kube/quantity_number.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string>

#include "pkg/base/parse.h"

namespace resmgr {

namespace {

// 10^19 < 2^64, so that the digits times the largest binary suffix (2^60) fit into 128 bits.
constexpr size_t kMaxDigits = 19;
// Keeps sums of exponents far from overflow; 10^±1000 is out of every range anyway.
constexpr int64_t kMaxExponent = 1000;

struct Suffix {
  std::string_view text;
  int decimal_exponent;
  int binary_exponent;
};

constexpr std::array<Suffix, 16> kSuffixes = {{{"", 0, 0},
                                               {"n", -9, 0},
                                               {"u", -6, 0},
                                               {"m", -3, 0},
                                               {"k", 3, 0},
                                               {"M", 6, 0},
                                               {"G", 9, 0},
                                               {"T", 12, 0},
                                               {"P", 15, 0},
                                               {"E", 18, 0},
                                               {"Ki", 0, 10},
                                               {"Mi", 0, 20},
                                               {"Gi", 0, 30},
                                               {"Ti", 0, 40},
                                               {"Pi", 0, 50},
                                               {"Ei", 0, 60}}};

bool IsDigit(char c) {
  return c >= '0' && c <= '9';
}

std::string_view TakeDigits(std::string_view& text) {
  const auto end = std::find_if_not(text.begin(), text.end(), IsDigit);
  const std::string_view digits = text.substr(0, static_cast<size_t>(end - text.begin()));
  text.remove_prefix(digits.size());
  return digits;
}

bool ApplySuffix(std::string_view text, QuantityNumber& number) {
  for (const Suffix& suffix : kSuffixes) {
    if (text != suffix.text) continue;
    number.decimal_exponent += suffix.decimal_exponent;
    number.binary_exponent += suffix.binary_exponent;
    number.form = suffix.binary_exponent > 0 ? QuantityForm::kBinary : QuantityForm::kDecimal;
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

}  // namespace

Status NotAQuantity(std::string_view text, std::string_view why) {
  return InvalidArgument("\"{}\" is not a quantity: {}", Printable(text, 64), why);
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

}  // namespace resmgr
