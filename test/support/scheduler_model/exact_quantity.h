// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

namespace resmgr::test {

// A Kubernetes quantity as a scheduler computes with it: exact to a billionth of its unit, of
// either sign. The product has code of its own for quantities (pkg/kube/quantity.h); the model of
// the scheduler shares nothing with what it checks. Immutable.
class ExactQuantity {
 public:
  ExactQuantity() = default;
  explicit ExactQuantity(int64_t whole);

  // Sign, digits, fraction, and a suffix (Ki to Ei, n u m k M G T P E) or an exponent. nullopt for
  // any other text, and for more than 64 bits of whole units.
  static std::optional<ExactQuantity> Parse(std::string_view text);
  // A string, or a number of JSON.
  static std::optional<ExactQuantity> Of(const nlohmann::json& value);

  // Whole units; the rest rounds up: 2 for 1500m.
  int64_t Value() const;
  bool IsZero() const { return billionths_ == 0; }
  bool IsWhole() const;
  // Whole units, or the billionths with the suffix "n".
  std::string Text() const;

  friend auto operator<=>(const ExactQuantity&, const ExactQuantity&) = default;
  ExactQuantity operator+(const ExactQuantity& other) const;
  ExactQuantity operator-(const ExactQuantity& other) const;
  ExactQuantity& operator+=(const ExactQuantity& other) { return *this = *this + other; }
  ExactQuantity& operator-=(const ExactQuantity& other) { return *this = *this - other; }
  ExactQuantity operator*(int64_t factor) const;
  // How many `step` are needed to reach this quantity; `step` is above 0.
  int64_t StepsOf(const ExactQuantity& step) const;

 private:
  __extension__ using Wide = __int128;

  Wide billionths_ = 0;
};

// Quantities by the names of resources.
using ResourceList = std::map<std::string, ExactQuantity, std::less<>>;

// An object of names and quantities; throws std::invalid_argument where one is not a quantity.
ResourceList ResourcesOf(const nlohmann::json& object);

}  // namespace resmgr::test
