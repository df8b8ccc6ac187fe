// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>
#include <vector>

#include "pkg/admin/node_json.h"
#include "pkg/base/status.h"
#include "pkg/cri/runtimes_watch.h"
#include "pkg/node/door_views.h"
#include "pkg/pipeline/field_owners.h"

namespace resmgr {

// The stages and their plugins, as cri-resmgr-ctl shows them.

// A fixed outside contract of `cri-resmgr-ctl plugins -o json`, each:
//   {"kind": "nri"|"hook","name","index","state": "ready"|"disconnected"|"failed","events":[],
//    "calls","failures","lastError","p50Micros"}
OrderedJson PluginsJson(const std::vector<PluginView>& plugins);

// A fixed outside contract of `cri-resmgr-ctl runtimes -o json`, each:
//   {"name","socket","version","state": "connected"|"away"|"hanging","since" (RFC 3339, or null),
//    "handlers":[],"pods","containers" (null: not counted),"calls","errors","lastError"}
OrderedJson RuntimesJson(const std::vector<RuntimeView>& runtimes);

// {"field","key" ("" of what has no keys),"stage","plugin" ("" where the stage has none)}
OrderedJson OwnerJson(const FieldOwner& owner);

// Adds to the "owners" of containers of ExplainJson the fields that stages behind the policy
// changed; a field that both changed belongs to the stage.
void AddOwners(const FieldOwners& owners, OrderedJson& containers);

// The answer to `explain` under the null policy: the containers that `what` and `choice` select,
// with the changes of plugins and hook servers to their requests. Each:
//   {"id","pod","namespace","name","cpus","mems","shares","quota","period","memoryLimit" (what it
//    has, as in ContainerJson),"policy": "null","owners" (OwnerJson),"hints": [],
//    "candidates": []}
// NotFound when there is none.
StatusOr<OrderedJson> ExplainSeenJson(const std::vector<SeenContainer>& seen,
                                      const FieldOwners& owners, std::string_view what,
                                      const ContainerChoice& choice,
                                      NameMatch match = NameMatch::kWhole);

}  // namespace resmgr
