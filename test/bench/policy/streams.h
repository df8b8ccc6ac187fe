// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <random>
#include <span>
#include <string_view>

#include "test/bench/policy/node.h"

namespace resmgr::test {

// Pods as they come to a node, one after the other.
struct Stream {
  std::string_view name;
  std::string_view what;  // one line on its pods
  PodShape (*next)(std::mt19937_64& random);
  // Pods end by their own lifetimes; else a random one ends if there is no room for the next.
  bool lifetimes = false;
};

// The random mix of SomePod, pods with the sizes of a GPU cluster's trace, exclusive pods alone.
std::span<const Stream> Streams();

// The number of further pods for which a pod of such a stream stays: most stay for few, some nearly
// for ever.
double Lifetime(std::mt19937_64& random);

}  // namespace resmgr::test
