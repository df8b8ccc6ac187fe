// SPDX-License-Identifier: Apache-2.0
#include "test/support/scheduler_model/exact_quantity.h"

#include <limits>
#include <stdexcept>

namespace resmgr::test {
namespace {

__extension__ using QuantityWide = __int128;

constexpr int64_t kBillion = 1'000'000'000;

// A multiplier as factor / divisor.
struct Suffix {
  std::string_view text;
  QuantityWide factor = 1;
  QuantityWide divisor = 1;
};

constexpr Suffix kSuffixes[] = {
    {"", 1, 1},
    {"n", 1, kBillion},
    {"u", 1, 1'000'000},
    {"m", 1, 1'000},
    {"k", 1'000, 1},
    {"M", 1'000'000, 1},
    {"G", kBillion, 1},
    {"T", QuantityWide{kBillion} * 1'000, 1},
    {"P", QuantityWide{kBillion} * 1'000'000, 1},
    {"E", QuantityWide{kBillion} * kBillion, 1},
    {"Ki", QuantityWide{1} << 10, 1},
    {"Mi", QuantityWide{1} << 20, 1},
    {"Gi", QuantityWide{1} << 30, 1},
    {"Ti", QuantityWide{1} << 40, 1},
    {"Pi", QuantityWide{1} << 50, 1},
    {"Ei", QuantityWide{1} << 60, 1},
};

bool IsQuantityDigit(char c) {
  return c >= '0' && c <= '9';
}

// The power of ten that "e3" and "E-2" stand for.
std::optional<Suffix> ExponentSuffix(std::string_view text) {
  if (text.size() < 2 || (text[0] != 'e' && text[0] != 'E')) return std::nullopt;
  text.remove_prefix(1);
  const bool negative = text[0] == '-';
  if (text[0] == '-' || text[0] == '+') text.remove_prefix(1);
  if (text.empty() || text.size() > 2) return std::nullopt;
  int power = 0;
  for (const char c : text) {
    if (!IsQuantityDigit(c)) return std::nullopt;
    power = power * 10 + (c - '0');
  }
  if (power > 18) return std::nullopt;
  Suffix suffix;
  for (int i = 0; i < power; ++i)
    (negative ? suffix.divisor : suffix.factor) *= 10;
  return suffix;
}

std::optional<Suffix> SuffixOf(std::string_view text) {
  for (const Suffix& suffix : kSuffixes) {
    if (suffix.text == text) return suffix;
  }
  return ExponentSuffix(text);
}

QuantityWide DividedUp(QuantityWide value, QuantityWide divisor) {
  return value / divisor + (value % divisor > 0 ? 1 : 0);
}

}  // namespace

ExactQuantity::ExactQuantity(int64_t whole) : billionths_(Wide{whole} * kBillion) {}

std::optional<ExactQuantity> ExactQuantity::Parse(std::string_view text) {
  const bool negative = text.starts_with('-');
  if (text.starts_with('-') || text.starts_with('+')) text.remove_prefix(1);
  Wide digits = 0;
  Wide divisor = 1;
  size_t seen = 0;
  bool fraction = false;
  while (!text.empty() && (IsQuantityDigit(text[0]) || (text[0] == '.' && !fraction))) {
    if (text[0] == '.') {
      fraction = true;
    } else {
      // 19 digits are 64 bits; with a factor of 60 bits the product is below 2^127.
      if (++seen > 19) return std::nullopt;
      digits = digits * 10 + (text[0] - '0');
      if (fraction) divisor *= 10;
    }
    text.remove_prefix(1);
  }
  const std::optional<Suffix> suffix = SuffixOf(text);
  if (seen == 0 || !suffix) return std::nullopt;
  divisor *= suffix->divisor;
  const Wide scaled = digits * suffix->factor;
  // Whole units and the rest apart: their billionths would not fit together before the division.
  const Wide whole = scaled / divisor;
  if (whole > std::numeric_limits<int64_t>::max()) return std::nullopt;
  Wide rest = scaled % divisor;
  Wide rest_divisor = divisor;
  while (rest_divisor > Wide{kBillion} * kBillion) {
    rest = DividedUp(rest, 10);
    rest_divisor /= 10;
  }
  ExactQuantity quantity;
  quantity.billionths_ = whole * kBillion + DividedUp(rest * kBillion, rest_divisor);
  if (negative) quantity.billionths_ = -quantity.billionths_;
  return quantity;
}

std::optional<ExactQuantity> ExactQuantity::Of(const nlohmann::json& value) {
  if (value.is_string()) return Parse(value.get_ref<const std::string&>());
  if (value.is_number()) return Parse(value.dump());
  return std::nullopt;
}

int64_t ExactQuantity::Value() const {
  return static_cast<int64_t>(DividedUp(billionths_, kBillion));
}

bool ExactQuantity::IsWhole() const {
  return billionths_ % kBillion == 0;
}

std::string ExactQuantity::Text() const {
  if (IsWhole()) return std::to_string(Value());
  // Only small quantities have fractions, thus 64 bits are enough here.
  return std::to_string(static_cast<int64_t>(billionths_)) + "n";
}

ExactQuantity ExactQuantity::operator+(const ExactQuantity& other) const {
  ExactQuantity sum;
  sum.billionths_ = billionths_ + other.billionths_;
  return sum;
}

ExactQuantity ExactQuantity::operator-(const ExactQuantity& other) const {
  ExactQuantity difference;
  difference.billionths_ = billionths_ - other.billionths_;
  return difference;
}

ExactQuantity ExactQuantity::operator*(int64_t factor) const {
  ExactQuantity product;
  product.billionths_ = billionths_ * factor;
  return product;
}

int64_t ExactQuantity::StepsOf(const ExactQuantity& step) const {
  return static_cast<int64_t>(DividedUp(billionths_, step.billionths_));
}

ResourceList ResourcesOf(const nlohmann::json& object) {
  ResourceList resources;
  for (const auto& [name, value] : object.items()) {
    const std::optional<ExactQuantity> quantity = ExactQuantity::Of(value);
    if (!quantity) throw std::invalid_argument(name + " is no quantity: " + value.dump());
    resources[name] = *quantity;
  }
  return resources;
}

}  // namespace resmgr::test
