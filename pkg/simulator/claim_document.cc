// SPDX-License-Identifier: Apache-2.0
#include "pkg/simulator/claim_document.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "pkg/base/json.h"
#include "pkg/base/parse.h"
#include "pkg/claims/claim_names.h"
#include "pkg/kube/names.h"
#include "pkg/simulator/yaml_access.h"

namespace resmgr {
namespace {

using Kind = ConfigNode::Kind;
using Json = nlohmann::json;

// Numbers stay texts: the API has none in a claim but quantities, which are both.
Json JsonOf(const ConfigNode& node) {
  switch (node.kind) {
    case Kind::kNull:
      return nullptr;
    case Kind::kList: {
      Json list = Json::array();
      for (const ConfigNode& item : node.items)
        list.push_back(JsonOf(item));
      return list;
    }
    case Kind::kMap: {
      Json map = Json::object();
      for (const ConfigNode::Entry& entry : node.entries)
        map[entry.key] = JsonOf(entry.value);
      return map;
    }
    case Kind::kScalar:
      break;
  }
  if (!node.quoted && (node.text == "true" || node.text == "false")) return node.text == "true";
  return node.text;
}

// FNV-1a, so that a claim has the same UID in each simulation.
std::string UidFor(std::string_view full_name) {
  uint64_t hash = 14695981039346656037U;
  for (const char c : full_name)
    hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211U;
  return fmt::format("00000000-0000-4000-8000-{:012x}", hash >> 16);
}

// The results of its allocation; nullptr: it has none.
StatusOr<const ConfigNode*> ResultsOf(const ConfigNode& object) {
  RESMGR_ASSIGN_OR_RETURN(const ConfigNode* const status,
                          FindKey(&object, "status", Kind::kMap, ""));
  if (status != nullptr)
    RESMGR_RETURN_IF_ERROR(
        CheckSpelling(*status, {"allocation", "reservedFor", "devices"}, "status."));
  RESMGR_ASSIGN_OR_RETURN(const ConfigNode* const allocation,
                          FindKey(status, "allocation", Kind::kMap, "status."));
  RESMGR_ASSIGN_OR_RETURN(const ConfigNode* const devices,
                          FindKey(allocation, "devices", Kind::kMap, "status.allocation."));
  if (devices != nullptr)
    RESMGR_RETURN_IF_ERROR(
        CheckSpelling(*devices, {"results", "config"}, "status.allocation.devices."));
  return FindKey(devices, "results", Kind::kList, "status.allocation.devices.");
}

Status CheckResults(const ConfigNode& object) {
  RESMGR_ASSIGN_OR_RETURN(const ConfigNode* const results, ResultsOf(object));
  if (results == nullptr) return OkStatus();
  for (size_t at = 0; at < results->items.size(); ++at) {
    const ConfigNode& result = results->items[at];
    const std::string path = fmt::format("status.allocation.devices.results[{}]", at);
    if (result.kind != Kind::kMap) return ErrorAt(result, path, "must be a map");
    RESMGR_RETURN_IF_ERROR(CheckSpelling(
        result,
        {"request", "driver", "pool", "device", "shareID", "consumedCapacity", "adminAccess"},
        path + "."));
  }
  return OkStatus();
}

}  // namespace

StatusOr<ClaimDocument> ReadClaim(const ConfigNode& object) {
  RESMGR_RETURN_IF_ERROR(
      CheckSpelling(object, {"apiVersion", "kind", "metadata", "spec", "status"}, ""));
  RESMGR_ASSIGN_OR_RETURN(const ConfigNode* const metadata,
                          FindKey(&object, "metadata", Kind::kMap, ""));
  ClaimDocument claim;
  RESMGR_ASSIGN_OR_RETURN(claim.name.name, FindText(metadata, "name", "metadata."));
  if (claim.name.name.empty())
    return ErrorAt(object, "metadata.name", "a ResourceClaim needs a name");
  RESMGR_RETURN_IF_ERROR(CheckSpelling(*metadata, {"name", "namespace", "uid"}, "metadata."));
  RESMGR_ASSIGN_OR_RETURN(claim.name.namespace_name, FindText(metadata, "namespace", "metadata."));
  if (claim.name.namespace_name.empty()) claim.name.namespace_name = "default";
  for (const std::string& name : {claim.name.name, claim.name.namespace_name}) {
    if (IsSubdomain(name)) continue;
    return ErrorAt(*metadata, "metadata",
                   fmt::format("\"{}\" is not a valid name", Printable(name, 64)));
  }
  RESMGR_ASSIGN_OR_RETURN(claim.name.uid, FindText(metadata, "uid", "metadata."));
  if (claim.name.uid.empty()) claim.name.uid = UidFor(claim.name.ToString());
  if (!IsClaimUid(claim.name.uid)) {
    return ErrorAt(*metadata, "metadata.uid",
                   fmt::format("\"{}\" is not a UID", Printable(claim.name.uid, 64)));
  }
  RESMGR_RETURN_IF_ERROR(CheckResults(object));
  Json json = JsonOf(object);
  json["metadata"] = {
      {"namespace", claim.name.namespace_name}, {"name", claim.name.name}, {"uid", claim.name.uid}};
  // Here schedulers would add each pod that names the claim.
  if (json.contains("status") && json["status"].is_object()) json["status"].erase("reservedFor");
  claim.object = JsonText(json);
  return claim;
}

StatusOr<bool> IsAllocatedOn(const ConfigNode& object, std::string_view node) {
  RESMGR_ASSIGN_OR_RETURN(const ConfigNode* const results, ResultsOf(object));
  if (results == nullptr) return false;
  return std::ranges::any_of(results->items, [node](const ConfigNode& result) {
    return std::ranges::any_of(result.entries, [node](const ConfigNode::Entry& entry) {
      return entry.key == "pool" && entry.value.text == node;
    });
  });
}

}  // namespace resmgr
