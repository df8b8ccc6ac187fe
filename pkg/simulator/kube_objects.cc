// SPDX-License-Identifier: Apache-2.0
#include "pkg/simulator/kube_objects.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "pkg/base/amount_text.h"
#include "pkg/base/json.h"
#include "pkg/base/parse.h"
#include "pkg/claims/claim_names.h"
#include "pkg/simulator/yaml_access.h"

namespace resmgr {
namespace {

using Kind = ConfigNode::Kind;
using Json = nlohmann::json;

// Limit of the kinds that are counted by name, more than Kubernetes has; further kinds are counted
// together.
constexpr size_t kNamedKinds = 100;

constexpr std::array<std::string_view, 7> kWorkloads = {
    "Deployment", "StatefulSet", "DaemonSet", "ReplicaSet", "ReplicationController",
    "Job",        "CronJob"};

std::string KindOf(const ConfigNode& object) {
  const ConfigNode* const kind = FindMember(object, "kind");
  return kind == nullptr ? "" : kind->text;
}

// FNV-1a over the whole template, so that equal templates give equal names.
void Hash(const ConfigNode& node, uint32_t& hash) {
  const auto add = [&hash](std::string_view text) {
    for (const char c : text)
      hash = (hash ^ static_cast<unsigned char>(c)) * 16777619U;
    hash = (hash ^ 0xff) * 16777619U;
  };
  add(node.text);
  for (const ConfigNode& item : node.items)
    Hash(item, hash);
  for (const ConfigNode::Entry& entry : node.entries) {
    add(entry.key);
    Hash(entry.value, hash);
  }
}

// Uses only the letters of Kubernetes' own suffixes, which form no words.
std::string SafeText(uint32_t number) {
  constexpr std::string_view kLetters = "bcdfghjklmnpqrstvwxz2456789";
  std::string text;
  for (const char digit : fmt::format("{}", number))
    text += kLetters[static_cast<size_t>(digit) % kLetters.size()];
  return text;
}

// Returns the pod of a template, in the namespace of the template's owner.
ConfigNode PodDocument(const ConfigNode& object, const ConfigNode& pod_template,
                       const std::string& name_space, const std::string& name) {
  ConfigNode document = pod_template;
  const auto scalar = [&object](std::string_view key, const std::string& text) {
    ConfigNode node = ScalarNode(text);
    node.line = object.line;
    node.source = object.source;
    return ConfigNode::Entry{.key = std::string(key), .line = object.line, .value = node};
  };
  auto metadata = std::ranges::find(document.entries, "metadata", &ConfigNode::Entry::key);
  if (metadata == document.entries.end()) {
    document.entries.push_back(scalar("metadata", ""));
    metadata = document.entries.end() - 1;
  }
  ConfigNode& values = metadata->value;
  values.kind = Kind::kMap;
  std::erase_if(values.entries, [](const ConfigNode::Entry& entry) {
    return entry.key == "name" || entry.key == "namespace";
  });
  values.entries.push_back(scalar("name", name));
  if (!name_space.empty()) values.entries.push_back(scalar("namespace", name_space));
  return document;
}

StatusOr<size_t> NumberAt(const ConfigNode* map, std::string_view key, std::string_view path,
                          size_t otherwise) {
  RESMGR_ASSIGN_OR_RETURN(const ConfigNode* const node, FindKey(map, key, Kind::kScalar, path));
  if (node == nullptr) return otherwise;
  const auto number = ParseUint(node->text);
  if (number && *number <= kMaxPods) return static_cast<size_t>(*number);
  return ErrorAt(*node, fmt::format("{}{}", path, key),
                 fmt::format("must be a number up to {}", kMaxPods));
}

bool IsWorkload(std::string_view kind) {
  return std::ranges::find(kWorkloads, kind) != kWorkloads.end();
}

// The kind of the items of a list, which may lack their own.
std::string_view KindOfItems(std::string_view kind) {
  return kind.substr(0, kind.size() - std::string_view("List").size());
}

// The text of a member of the object's metadata; empty if it has none.
std::string_view MetadataText(const ConfigNode& object, std::string_view key) {
  const ConfigNode* const metadata = FindMember(object, "metadata");
  const ConfigNode* const value = metadata == nullptr ? nullptr : FindMember(*metadata, key);
  return value == nullptr ? std::string_view() : std::string_view(value->text);
}

std::string WorkloadKey(const ConfigNode& object, std::string_view kind, std::string_view name) {
  const std::string_view name_space = MetadataText(object, "namespace");
  return fmt::format("{}/{}/{}", name_space.empty() ? "default" : name_space, kind, name);
}

// Whether the object belongs to a workload that the simulation reads itself, so that the object
// would count twice.
StatusOr<bool> HasOwnerThatCounts(const ConfigNode& object) {
  RESMGR_ASSIGN_OR_RETURN(const ConfigNode* const owners,
                          FindAt(object, "metadata.ownerReferences", Kind::kList));
  if (owners == nullptr) return false;
  return std::ranges::any_of(owners->items, [](const ConfigNode& owner) {
    const std::string kind = KindOf(owner);
    return kind == "Deployment" || kind == "CronJob";
  });
}

// Whether the object is a suspended Job or CronJob, or a finished Job.
StatusOr<bool> RunsNothing(const ConfigNode& object, const ConfigNode* spec,
                           std::string_view kind) {
  if (kind != "Job" && kind != "CronJob") return false;
  RESMGR_ASSIGN_OR_RETURN(const std::string suspend, FindText(spec, "suspend", "spec."));
  if (suspend == "true") return true;
  RESMGR_ASSIGN_OR_RETURN(const ConfigNode* const conditions,
                          FindAt(object, "status.conditions", Kind::kList));
  if (conditions == nullptr) return false;
  for (const ConfigNode& condition : conditions->items) {
    RESMGR_ASSIGN_OR_RETURN(const std::string type,
                            FindText(&condition, "type", "status.conditions."));
    RESMGR_ASSIGN_OR_RETURN(const std::string is,
                            FindText(&condition, "status", "status.conditions."));
    if ((type == "Complete" || type == "Failed") && is == "True") return true;
  }
  return false;
}

// How many pods of the workload run at a time; of a DaemonSet, on one node.
StatusOr<size_t> ReplicasOf(std::string_view kind, const ConfigNode* spec, std::string_view path) {
  if (kind == "DaemonSet") return 1;
  if (kind != "Job" && kind != "CronJob") return NumberAt(spec, "replicas", path, 1);
  RESMGR_ASSIGN_OR_RETURN(const size_t parallel, NumberAt(spec, "parallelism", path, 1));
  RESMGR_ASSIGN_OR_RETURN(const size_t all, NumberAt(spec, "completions", path, parallel));
  return std::min(parallel, all);
}

// Numbers become texts: all numbers in a claim are quantities, which the API also accepts as texts.
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

// The results of the claim's allocation; nullptr: it has none.
StatusOr<const ConfigNode*> ResultsOf(const ConfigNode& object) {
  RESMGR_ASSIGN_OR_RETURN(const ConfigNode* const status,
                          FindKey(&object, "status", Kind::kMap, ""));
  if (status != nullptr)
    RESMGR_RETURN_IF_ERROR(
        CheckSpelling(*status, {"allocation", "reservedFor", "devices"}, "status."));
  RESMGR_ASSIGN_OR_RETURN(const ConfigNode* const devices,
                          FindAt(object, "status.allocation.devices", Kind::kMap));
  if (devices != nullptr)
    RESMGR_RETURN_IF_ERROR(
        CheckSpelling(*devices, {"results", "config"}, "status.allocation.devices."));
  return FindKey(devices, "results", Kind::kList, "status.allocation.devices.");
}

// Whether the claim's allocation has a device in this node's pool, which has the node's name.
StatusOr<bool> IsAllocatedOn(const ConfigNode& object, std::string_view node) {
  RESMGR_ASSIGN_OR_RETURN(const ConfigNode* const results, ResultsOf(object));
  if (results == nullptr) return false;
  return std::ranges::any_of(results->items, [node](const ConfigNode& result) {
    const ConfigNode* const pool = FindMember(result, "pool");
    return pool != nullptr && pool->text == node;
  });
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

bool IsKubeObject(const ConfigNode& document) {
  return FindMember(document, "kind") != nullptr;
}

Status KubeObjects::Read(const ConfigNode& object) {
  return ReadKind(object, KindOf(object));
}

void KubeObjects::Announce(const ConfigNode& object) {
  AnnounceKind(object, KindOf(object));
}

void KubeObjects::AnnounceKind(const ConfigNode& object, std::string_view kind) {
  if (IsWorkload(kind)) {
    const ConfigNode* const spec = FindMember(object, "spec");
    if (RunsNothing(object, spec, kind).value_or(true)) return;
    announced_.insert(WorkloadKey(object, kind, MetadataText(object, "name")));
  } else if (const ConfigNode* const items = FindMember(object, "items");
             items != nullptr && kind.ends_with("List")) {
    for (const ConfigNode& item : items->items) {
      const std::string own = KindOf(item);
      AnnounceKind(item, own.empty() ? KindOfItems(kind) : own);
    }
  }
}

// A pod of a Deployment or CronJob is owned by a ReplicaSet or Job NAME-SUFFIX, which a list of
// objects need not have.
bool KubeObjects::HasAnnouncedOwner(const ConfigNode& pod) const {
  const ConfigNode* const metadata = FindMember(pod, "metadata");
  const ConfigNode* const owners =
      metadata == nullptr ? nullptr : FindMember(*metadata, "ownerReferences");
  if (owners == nullptr) return false;
  return std::ranges::any_of(owners->items, [&](const ConfigNode& owner) {
    const std::string kind = KindOf(owner);
    const ConfigNode* const name = FindMember(owner, "name");
    if (name == nullptr) return false;
    const std::string_view of_owner = kind == "ReplicaSet" ? "Deployment" : "CronJob";
    const std::string_view stem = std::string_view(name->text).substr(0, name->text.rfind('-'));
    return announced_.contains(WorkloadKey(pod, kind, name->text)) ||
           ((kind == "ReplicaSet" || kind == "Job") &&
            announced_.contains(WorkloadKey(pod, of_owner, stem)));
  });
}

Status KubeObjects::ReadKind(const ConfigNode& object, std::string_view kind) {
  if (kind == "Pod") return ReadPod(object);
  if (kind == "ResourceClaim") return ReadClaimObject(object);
  if (IsWorkload(kind)) return ReadWorkload(object, kind);
  if (kind.ends_with("List")) return ReadItems(object, kind);
  const std::string name =
      skipped_.size() < kNamedKinds ? Printable(kind.empty() ? "(none)" : kind, 64) : "(others)";
  ++skipped_[name];
  return OkStatus();
}

Status KubeObjects::ReadPod(const ConfigNode& object) {
  RESMGR_ASSIGN_OR_RETURN(const std::string phase, FindTextAt(object, "status.phase"));
  if (phase == "Succeeded" || phase == "Failed") {
    ++ended_;
    return OkStatus();
  }
  if (!node_.empty()) {
    RESMGR_ASSIGN_OR_RETURN(const std::string node, FindTextAt(object, "spec.nodeName"));
    if (node != node_) {
      ++elsewhere_;
      return OkStatus();
    }
  } else if (HasAnnouncedOwner(object)) {
    ++owned_["Pod"];
    return OkStatus();
  }
  RESMGR_ASSIGN_OR_RETURN(Manifest manifest, ReadManifest(object));
  return Add({.where = Where(object), .manifest = std::move(manifest)});
}

Status KubeObjects::ReadClaimObject(const ConfigNode& object) {
  RESMGR_ASSIGN_OR_RETURN(ClaimDocument claim, ReadClaim(object));
  if (!node_.empty()) {
    RESMGR_ASSIGN_OR_RETURN(const bool here, IsAllocatedOn(object, node_));
    if (!here) {
      ++claims_elsewhere_;
      return OkStatus();
    }
  }
  if (++claim_count_ > kMaxClaims)
    return InvalidArgument("{}: more than {} claims", Where(object), kMaxClaims);
  claims_.push_back({.where = Where(object), .claim = std::move(claim)});
  return OkStatus();
}

Status KubeObjects::ReadItems(const ConfigNode& list, std::string_view kind) {
  RESMGR_ASSIGN_OR_RETURN(const ConfigNode* const items, FindKey(&list, "items", Kind::kList, ""));
  if (items == nullptr) return OkStatus();
  for (const ConfigNode& item : items->items) {
    if (item.kind != Kind::kMap) return ErrorAt(item, "items", "must be objects");
    const std::string own = KindOf(item);
    RESMGR_RETURN_IF_ERROR(ReadKind(item, own.empty() ? KindOfItems(kind) : own));
  }
  return OkStatus();
}

Status KubeObjects::ReadWorkload(const ConfigNode& object, std::string_view kind) {
  if (!node_.empty()) {
    ++workloads_elsewhere_;
    return OkStatus();
  }
  RESMGR_ASSIGN_OR_RETURN(const bool owned, HasOwnerThatCounts(object));
  if (owned) {
    ++owned_[std::string(kind)];
    return OkStatus();
  }
  RESMGR_ASSIGN_OR_RETURN(const ConfigNode* spec, FindKey(&object, "spec", Kind::kMap, ""));
  RESMGR_ASSIGN_OR_RETURN(const bool idle, RunsNothing(object, spec, kind));
  if (idle) {
    ++idle_;
    return OkStatus();
  }
  if (kind != "CronJob") return AddReplicas(object, kind, spec, "spec.");
  RESMGR_ASSIGN_OR_RETURN(spec, FindAt(object, "spec.jobTemplate.spec", Kind::kMap));
  return AddReplicas(object, kind, spec, "spec.jobTemplate.spec.");
}

// `path` is the path of the spec that has the template.
Status KubeObjects::AddReplicas(const ConfigNode& object, std::string_view kind,
                                const ConfigNode* spec, const std::string& path) {
  RESMGR_ASSIGN_OR_RETURN(std::string name, FindTextAt(object, "metadata.name"));
  if (name.empty()) return ErrorAt(object, "metadata.name", fmt::format("a {} needs a name", kind));
  RESMGR_ASSIGN_OR_RETURN(const std::string name_space, FindTextAt(object, "metadata.namespace"));
  RESMGR_ASSIGN_OR_RETURN(const ConfigNode* const pod_template,
                          FindKey(spec, "template", Kind::kMap, path));
  if (pod_template == nullptr) return ErrorAt(object, path + "template", "is missing");
  RESMGR_ASSIGN_OR_RETURN(const size_t replicas, ReplicasOf(kind, spec, path));
  size_t first = 0;
  if (kind == "StatefulSet") {
    RESMGR_ASSIGN_OR_RETURN(const ConfigNode* const ordinals,
                            FindKey(spec, "ordinals", Kind::kMap, "spec."));
    RESMGR_ASSIGN_OR_RETURN(first, NumberAt(ordinals, "start", "spec.ordinals.", 0));
  } else {
    uint32_t hash = 2166136261U;
    Hash(*pod_template, hash);
    name += '-' + SafeText(hash);
  }
  RESMGR_ASSIGN_OR_RETURN(Manifest manifest,
                          ReadManifest(PodDocument(object, *pod_template, name_space, name)));
  for (size_t i = 0; i < replicas; ++i) {
    PodOfObject pod{.where = Where(object), .manifest = manifest};
    if (kind != "DaemonSet") pod.manifest.name = fmt::format("{}-{}", name, first + i);
    RESMGR_RETURN_IF_ERROR(Add(std::move(pod)));
  }
  return OkStatus();
}

Status KubeObjects::Add(PodOfObject pod) {
  if (++count_ > kMaxPods) {
    return InvalidArgument("{}: more than {} pods", pod.where, kMaxPods);
  }
  pods_.push_back(std::move(pod));
  return OkStatus();
}

std::vector<PodOfObject> KubeObjects::TakePods() {
  return std::exchange(pods_, {});
}

std::vector<ClaimOfObject> KubeObjects::TakeClaims() {
  return std::exchange(claims_, {});
}

std::vector<std::string> KubeObjects::Notes() const {
  std::vector<std::string> notes;
  for (const auto& [kind, count] : skipped_)
    notes.push_back(fmt::format("skipped {} of kind {}, which places no pods here", count, kind));
  for (const auto& [kind, count] : owned_) {
    notes.push_back(
        fmt::format("skipped {} of kind {} made by an owner, which counts instead", count, kind));
  }
  const auto tell = [&notes](size_t count, std::string_view what, const std::string& more = "") {
    if (count > 0)
      notes.push_back("skipped " + CountText(static_cast<int64_t>(count), what) + more);
  };
  tell(idle_, "suspended or ended workload");
  tell(elsewhere_, "pod", " not on node " + Printable(node_));
  tell(workloads_elsewhere_, "workload", ": with -node, the pods that run there count");
  tell(claims_elsewhere_, "claim", " without a device of node " + Printable(node_));
  tell(ended_, "ended pod");
  return notes;
}

StatusOr<ClaimDocument> ReadClaim(const ConfigNode& object) {
  RESMGR_RETURN_IF_ERROR(
      CheckSpelling(object, {"apiVersion", "kind", "metadata", "spec", "status"}, ""));
  RESMGR_ASSIGN_OR_RETURN(ObjectName names,
                          ReadObjectName(object, "a ResourceClaim", {"name", "namespace", "uid"}));
  ClaimDocument claim{.name = {.uid = std::move(names.uid),
                               .namespace_name = std::move(names.namespace_name),
                               .name = std::move(names.name)}};
  if (claim.name.uid.empty()) claim.name.uid = UidFor(claim.name.ToString());
  if (!IsClaimUid(claim.name.uid)) {
    return ErrorAt(*FindMember(object, "metadata"), "metadata.uid",
                   fmt::format("\"{}\" is not a UID", Printable(claim.name.uid, 64)));
  }
  RESMGR_RETURN_IF_ERROR(CheckResults(object));
  Json json = JsonOf(object);
  json["metadata"] = {
      {"namespace", claim.name.namespace_name}, {"name", claim.name.name}, {"uid", claim.name.uid}};
  // Drops reservations for pods of the cluster: in a simulation every pod that names the claim may
  // use it.
  if (json.contains("status") && json["status"].is_object()) json["status"].erase("reservedFor");
  claim.object = JsonText(json);
  return claim;
}

}  // namespace resmgr
