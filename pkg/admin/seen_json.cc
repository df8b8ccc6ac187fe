// SPDX-License-Identifier: Apache-2.0
#include "pkg/admin/seen_json.h"

#include "pkg/admin/stage_json.h"

namespace resmgr {
namespace {

// Members that only a policy could fill are left out.
OrderedJson SeenJson(const SeenContainer& seen) {
  const OrderedJson all = ContainerJson(seen.pod, seen.container, "null");
  OrderedJson object;
  for (const char* const key : {"id", "pod", "namespace", "name", "cpus", "mems", "shares", "quota",
                                "period", "memoryLimit", "policy"}) {
    object[key] = all.at(key);
  }
  object["owners"] = OrderedJson::array();
  object["hints"] = OrderedJson::array();
  object["candidates"] = OrderedJson::array();
  return object;
}

}  // namespace

StatusOr<OrderedJson> ExplainSeenJson(const std::vector<SeenContainer>& seen,
                                      const FieldOwners& owners, std::string_view what,
                                      const ContainerChoice& choice, NameMatch match) {
  OrderedJson list = OrderedJson::array();
  for (const SeenContainer& one : seen) {
    if (!choice.Includes(one.pod)) continue;
    if (what.empty() || Names(one.pod, one.container, what, match)) list.push_back(SeenJson(one));
  }
  if (list.empty()) return NoSuchContainer(what);
  AddOwners(owners, list);
  return list;
}

}  // namespace resmgr
