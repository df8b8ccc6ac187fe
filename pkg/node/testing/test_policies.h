// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include "pkg/policy/registry.h"
#include "pkg/resmgr/testing/test_node.h"

namespace resmgr::test {

// A registry with "null" and "first-fit".
inline PolicyRegistry NullAndFirstFit() {
  return PolicyRegistry(std::vector<PolicyFactory>{
      {.name = "null",
       .description = "nothing",
       .create = [](const PolicyContext&) -> StatusOr<std::unique_ptr<Policy>> { return nullptr; }},
      {.name = "first-fit",
       .description = "the lowest CPUs",
       .create = [](const PolicyContext& context) -> StatusOr<std::unique_ptr<Policy>> {
         return std::make_unique<FirstFitPolicy>(context.machine);
       }}});
}

}  // namespace resmgr::test
