// SPDX-License-Identifier: Apache-2.0
#include "pkg/admin/stage_json.h"

#include <algorithm>
#include <string>
#include <utility>

namespace resmgr {
namespace {

void AddOwner(OrderedJson owner, OrderedJson& list) {
  const auto before = std::find_if(list.begin(), list.end(), [&owner](const OrderedJson& known) {
    return known["field"] == owner["field"] && known["key"] == owner["key"];
  });
  if (before == list.end()) {
    list.push_back(std::move(owner));
  } else {
    *before = std::move(owner);
  }
}

}  // namespace

OrderedJson PluginsJson(const std::vector<PluginView>& plugins) {
  OrderedJson list = OrderedJson::array();
  for (const PluginView& plugin : plugins) {
    list.push_back({{"kind", plugin.kind},
                    {"name", plugin.name},
                    {"index", plugin.index},
                    {"state", ToString(plugin.state)},
                    {"events", plugin.events},
                    {"calls", plugin.calls},
                    {"failures", plugin.failures},
                    {"lastError", plugin.last_error},
                    {"p50Micros", plugin.p50_micros}});
  }
  return list;
}

OrderedJson OwnerJson(const FieldOwner& owner) {
  return {{"field", ToString(owner.change.field)},
          {"key", owner.change.key},
          {"stage", owner.stage},
          {"plugin", owner.plugin}};
}

void AddOwners(const FieldOwners& owners, OrderedJson& containers) {
  for (OrderedJson& container : containers) {
    for (const FieldOwner& owner : owners.Of(ContainerId(container.value("id", "")))) {
      AddOwner(OwnerJson(owner), container["owners"]);
    }
  }
}

}  // namespace resmgr
