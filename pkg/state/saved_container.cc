// SPDX-License-Identifier: Apache-2.0
#include "pkg/state/saved_container.h"

#include <optional>

#include <nlohmann/json.hpp>

namespace resmgr {
namespace {

using Json = nlohmann::json;

template <typename T>
void Put(Json& object, const char* key, const std::optional<T>& value) {
  if (value) object[key] = *value;
}

template <typename T>
void Get(const Json& object, const char* key, std::optional<T>& value) {
  const auto found = object.find(key);
  if (found != object.end()) value = found->get<T>();
}

template <typename Set>
Status GetSet(const Json& object, const char* key, Set& set) {
  const auto found = object.find(key);
  if (found == object.end()) return OkStatus();
  RESMGR_ASSIGN_OR_RETURN(set, Set::Parse(found->get<std::string>()));
  return OkStatus();
}

Json Encode(const LinuxResources& resources) {
  Json object = Json::object();
  Put(object, "period", resources.cpu_period);
  Put(object, "quota", resources.cpu_quota);
  Put(object, "shares", resources.cpu_shares);
  Put(object, "memoryLimit", resources.memory_limit);
  Put(object, "oomScoreAdj", resources.oom_score_adj);
  Put(object, "cpus", resources.cpuset_cpus);
  Put(object, "mems", resources.cpuset_mems);
  for (const auto& [size, limit] : resources.hugepage_limits)
    object["hugepages"][size] = limit;
  return object;
}

LinuxResources DecodeResources(const Json& object) {
  LinuxResources resources;
  Get(object, "period", resources.cpu_period);
  Get(object, "quota", resources.cpu_quota);
  Get(object, "shares", resources.cpu_shares);
  Get(object, "memoryLimit", resources.memory_limit);
  Get(object, "oomScoreAdj", resources.oom_score_adj);
  Get(object, "cpus", resources.cpuset_cpus);
  Get(object, "mems", resources.cpuset_mems);
  const auto pages = object.find("hugepages");
  if (pages != object.end()) {
    for (const auto& [size, limit] : pages->items())
      resources.hugepage_limits[size] = limit.get<uint64_t>();
  }
  return resources;
}

Json Encode(const std::vector<LocalityHint>& hints) {
  Json list = Json::array();
  for (const LocalityHint& hint : hints) {
    list.push_back({{"source", hint.source},
                    {"cpus", hint.cpus.ToString()},
                    {"nodes", hint.nodes.ToString()}});
  }
  return list;
}

StatusOr<SavedContainer> Decode(const Json& object) {
  if (!object.at("requested").is_object() || !object.at("needs").is_object()) {
    return InvalidArgument("not a saved container: members have the wrong type");
  }
  SavedContainer saved;
  RESMGR_RETURN_IF_ERROR(GetSet(object, "exclusive", saved.exclusive));
  Get(object, "shares", saved.cpu_shares);
  Get(object, "quota", saved.cpu_quota);
  Get(object, "period", saved.cpu_period);
  saved.pool = object.value("pool", "");
  saved.reason = object.value("reason", "");
  saved.requested = DecodeResources(object.at("requested"));
  const Json& needs = object.at("needs");
  saved.requirements.cpu_request = MilliCpu{needs.value("cpuRequest", int64_t{0})};
  saved.requirements.cpu_limit = MilliCpu{needs.value("cpuLimit", int64_t{0})};
  saved.requirements.memory_request = Bytes{needs.value("memoryRequest", int64_t{0})};
  saved.requirements.memory_limit = Bytes{needs.value("memoryLimit", int64_t{0})};
  const auto hints = object.find("hints");
  if (hints == object.end()) return saved;
  for (const Json& item : *hints) {
    LocalityHint& hint = saved.hints.emplace_back();
    hint.source = item.value("source", "");
    RESMGR_RETURN_IF_ERROR(GetSet(item, "cpus", hint.cpus));
    RESMGR_RETURN_IF_ERROR(GetSet(item, "nodes", hint.nodes));
  }
  return saved;
}

}  // namespace

SavedContainer ToSaved(const Container& container) {
  const Placement& placement = container.placement;
  return {
      .exclusive = placement.exclusive,
      .cpu_shares = placement.cpu_shares,
      .cpu_quota = placement.cpu_quota,
      .cpu_period = placement.cpu_period,
      .pool = placement.pool,
      .reason = placement.reason,
      .requested = container.requested,
      .requirements = container.requirements,
      .hints = container.hints,
  };
}

bool Matches(const SavedContainer& saved, const Container& container) {
  const Placement& placement = container.placement;
  return saved.exclusive == placement.exclusive && saved.cpu_shares == placement.cpu_shares &&
         saved.cpu_quota == placement.cpu_quota && saved.cpu_period == placement.cpu_period &&
         saved.requirements == container.requirements && saved.pool == placement.pool &&
         saved.reason == placement.reason && saved.requested == container.requested &&
         saved.hints == container.hints;
}

std::string EncodeSaved(const SavedContainer& saved) {
  Json object = {{"exclusive", saved.exclusive.ToString()},
                 {"pool", saved.pool},
                 {"reason", saved.reason},
                 {"requested", Encode(saved.requested)}};
  Put(object, "shares", saved.cpu_shares);
  Put(object, "quota", saved.cpu_quota);
  Put(object, "period", saved.cpu_period);
  object["needs"] = {{"cpuRequest", saved.requirements.cpu_request.value},
                     {"cpuLimit", saved.requirements.cpu_limit.value},
                     {"memoryRequest", saved.requirements.memory_request.value},
                     {"memoryLimit", saved.requirements.memory_limit.value}};
  if (!saved.hints.empty()) object["hints"] = Encode(saved.hints);
  // Names come from outside: what is no UTF-8 must not stop the saving.
  return object.dump(-1, ' ', false, Json::error_handler_t::replace);
}

StatusOr<SavedContainer> DecodeSaved(std::string_view text) {
  try {
    return Decode(Json::parse(text));
  } catch (const Json::exception& error) {
    return InvalidArgument("not a saved container: {}", error.what());
  }
}

}  // namespace resmgr
