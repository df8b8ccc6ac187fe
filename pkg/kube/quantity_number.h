// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>

#include "pkg/base/status.h"

namespace resmgr {

// The written form of a quantity, which its canonical text keeps.
enum class QuantityForm { kDecimal, kBinary, kExponent };

// An exactly parsed quantity: digits * 10^decimal_exponent * 2^binary_exponent. At most 19 digits,
// and a binary exponent of at most 60, so that digits * 2^binary_exponent has 128 bits.
struct QuantityNumber {
  uint64_t digits = 0;
  int decimal_exponent = 0;
  int binary_exponent = 0;
  QuantityForm form = QuantityForm::kDecimal;
};

// See quantity.h for the syntax and the errors.
StatusOr<QuantityNumber> ParseQuantityNumber(std::string_view text);

// kInvalidArgument that quotes the text.
Status NotAQuantity(std::string_view text, std::string_view why);

}  // namespace resmgr
