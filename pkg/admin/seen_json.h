// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>
#include <vector>

#include "pkg/admin/node_json.h"
#include "pkg/base/status.h"
#include "pkg/node/seen_container.h"
#include "pkg/pipeline/field_owners.h"

namespace resmgr {

// Explanations under the null policy: the containers of the choice that `what` names, as in
// ExplainJson, with what plugins and hook servers changed of their requests. Each:
//   {"id","pod","namespace","name","cpus","mems","shares","quota","period","memoryLimit" (what it
//    has, as in ContainerJson),"policy": "null","owners" (stage_json.h),"hints": [],
//    "candidates": []}
// NotFound when there is none.
StatusOr<OrderedJson> ExplainSeenJson(const std::vector<SeenContainer>& seen,
                                      const FieldOwners& owners, std::string_view what,
                                      const ContainerChoice& choice,
                                      NameMatch match = NameMatch::kWhole);

}  // namespace resmgr
