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

// Leaves out members that have a value only under a policy.
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

OrderedJson RuntimesJson(const std::vector<RuntimeView>& runtimes) {
  const auto or_null = [](const auto& value) {
    return value ? OrderedJson(*value) : OrderedJson(nullptr);
  };
  OrderedJson list = OrderedJson::array();
  for (const RuntimeView& runtime : runtimes) {
    list.push_back(
        {{"name", runtime.name},
         {"socket", runtime.socket},
         {"version", runtime.version},
         {"state", ToString(runtime.state)},
         {"since", runtime.since ? OrderedJson(Rfc3339(*runtime.since)) : OrderedJson(nullptr)},
         {"handlers", runtime.handlers},
         {"pods", or_null(runtime.pods)},
         {"containers", or_null(runtime.containers)},
         {"calls", or_null(runtime.calls)},
         {"errors", or_null(runtime.errors)},
         {"lastError", runtime.last_error}});
  }
  return list;
}

OrderedJson OwnerJson(const FieldOwner& owner) {
  OrderedJson object = {{"field", ToString(owner.change.field)},
                        {"key", owner.change.key},
                        {"stage", owner.stage},
                        {"plugin", owner.plugin}};
  if (!owner.value.empty()) object["value"] = owner.value;
  return object;
}

void AddOwners(const FieldOwners& owners, OrderedJson& containers) {
  for (OrderedJson& container : containers) {
    for (const FieldOwner& owner : owners.Of(ContainerId(container.value("id", "")))) {
      AddOwner(OwnerJson(owner), container["owners"]);
    }
    const auto& left_out = owners.LeftOutOf(ContainerId(container.value("id", "")));
    if (!left_out.empty()) container["leftOut"] = left_out;
  }
}

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
