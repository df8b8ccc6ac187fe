// SPDX-License-Identifier: Apache-2.0
#include "agent/node_patch.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/ranges.h>

#include "pkg/base/json.h"
#include "pkg/base/parse.h"
#include "pkg/kube/quantity.h"

namespace resmgr::agent {
namespace {

constexpr size_t kMaxOperations = 256;

// copy and move are left out: a small patch could fill the memory with copies, and no client needs
// them.
constexpr std::array<std::string_view, 4> kOperations = {"add", "replace", "remove", "test"};

Status Denied(std::string_view message) {
  return MakeStatus(StatusCode::kPermissionDenied, message);
}

StatusOr<Json> ToJsonPatch(const std::vector<PatchOperation>& operations) {
  if (operations.size() > kMaxOperations) {
    return InvalidArgument("{} operations in one patch: {} are the limit", operations.size(),
                           kMaxOperations);
  }
  Json patch = Json::array();
  for (const PatchOperation& operation : operations) {
    if (std::find(kOperations.begin(), kOperations.end(), operation.op) == kOperations.end()) {
      return InvalidArgument("operation \"{}\": known are {}", Printable(operation.op),
                             fmt::join(kOperations, ", "));
    }
    Json entry = {{"op", operation.op}, {"path", operation.path}};
    if (operation.op != "remove") {
      std::optional<Json> value = ParseJson(operation.value);
      if (!value) {
        return InvalidArgument(
            "{}: the value is not JSON (a string needs quotes), or nested too deep",
            Printable(operation.path));
      }
      entry["value"] = *std::move(value);
    }
    patch.push_back(std::move(entry));
  }
  return patch;
}

// If the patch does not fit the library throws, but not for a child of a scalar, which is checked
// here.
StatusOr<Json> Apply(Json node, const Json& patch) {
  try {
    for (const Json& operation : patch) {
      const Json::json_pointer place(operation.at("path").get<std::string>());
      if (!place.empty() && !node.at(place.parent_pointer()).is_structured()) {
        return InvalidArgument("the patch does not fit the node: {} is neither object nor list",
                               Printable(place.parent_pointer().to_string()));
      }
      node.patch_inplace(Json::array({operation}));
    }
    return node;
  } catch (const Json::exception& error) {
    return InvalidArgument("the patch does not fit the node: {}", Printable(error.what()));
  }
}

const Json& ObjectAt(const Json& value, std::initializer_list<std::string_view> path) {
  static const auto* const kEmpty = new Json(Json::object());
  const Json* found = Find(value, path);
  return found != nullptr && found->is_object() ? *found : *kEmpty;
}

// The merge patch that turns `before` into `after`, both maps of strings.
StatusOr<Json> MapChanges(std::string_view what, const Json& before, const Json& after,
                          const KeyRules& rules) {
  Json changes = Json::object();
  for (const auto& [key, value] : after.items()) {
    if (const auto old = before.find(key); old != before.end() && *old == value) continue;
    RESMGR_RETURN_IF_ERROR(rules.Check(what, key));
    if (!value.is_string()) {
      return InvalidArgument("{} {}: the value must be a string", what, Printable(key));
    }
    changes[key] = value;
  }
  for (const auto& [key, value] : before.items()) {
    if (after.contains(key)) continue;
    RESMGR_RETURN_IF_ERROR(rules.Check(what, key));
    changes[key] = nullptr;
  }
  return changes;
}

Json TaintsOf(const Json& node) {
  const Json* taints = Find(node, {"spec", "taints"});
  return taints != nullptr && taints->is_array() ? *taints : Json::array();
}

// Checks every taint that is in only one of the lists.
Status CheckTaints(const Json& before, const Json& after, const KeyRules& rules) {
  for (const auto& [one, other] : {std::pair(&before, &after), std::pair(&after, &before)}) {
    for (const Json& taint : *one) {
      if (std::find(other->begin(), other->end(), taint) != other->end()) continue;
      RESMGR_RETURN_IF_ERROR(rules.Check("taint", TextAt(taint, {"key"})));
    }
  }
  return OkStatus();
}

// The node without the fields that may be patched.
Json Rest(Json node) {
  for (const auto& [parent, key] :
       {std::pair("metadata", "labels"), std::pair("metadata", "annotations"),
        std::pair("spec", "taints")}) {
    const auto found = node.find(parent);
    if (found == node.end() || !found->is_object()) continue;
    found->erase(key);
    if (found->empty()) node.erase(found);
  }
  return node;
}

// The limit of all annotations of an object together.
constexpr size_t kMostUnseen = size_t{256} << 10;

}  // namespace

Status KeyRules::Check(std::string_view what, std::string_view key) const {
  const std::string name = Printable(key);
  // Keys that differ from a reserved one in case only are refused, too: a reader may confuse them.
  const auto is_key = [key](const std::string& one) { return EqualsIgnoreCase(one, key); };
  if (std::any_of(reserved.begin(), reserved.end(), is_key)) {
    return Denied(fmt::format("{} {} is not the daemon's to change", what, name));
  }
  const size_t slash = key.find('/');
  const std::string_view own = key.substr(0, slash == std::string_view::npos ? 0 : slash);
  for (const std::string& domain : domains) {
    if (own == domain || (own.ends_with(domain) && own.size() > domain.size() &&
                          own[own.size() - domain.size() - 1] == '.')) {
      return OkStatus();
    }
  }
  return Denied(fmt::format("{} {} is outside the allowed domains ({})", what, name,
                            fmt::join(domains, ", ")));
}

size_t SizeOf(const std::vector<PatchOperation>& operations) {
  size_t size = 0;
  for (const PatchOperation& one : operations)
    size += sizeof(one) + one.op.size() + one.path.size() + one.value.size();
  return size;
}

StatusOr<std::optional<Json>> PlanNodePatch(const Json& node,
                                            const std::vector<PatchOperation>& operations,
                                            const KeyRules& rules) {
  RESMGR_ASSIGN_OR_RETURN(const Json patch, ToJsonPatch(operations));
  RESMGR_ASSIGN_OR_RETURN(const Json after, Apply(node, patch));
  if (!after.is_object() || Rest(node) != Rest(after)) {
    return Denied("only labels, annotations and taints of the node can be patched");
  }
  RESMGR_ASSIGN_OR_RETURN(Json labels, MapChanges("label", ObjectAt(node, {"metadata", "labels"}),
                                                  ObjectAt(after, {"metadata", "labels"}), rules));
  RESMGR_ASSIGN_OR_RETURN(Json annotations,
                          MapChanges("annotation", ObjectAt(node, {"metadata", "annotations"}),
                                     ObjectAt(after, {"metadata", "annotations"}), rules));
  Json taints = TaintsOf(after);
  const bool retainted = taints != TaintsOf(node);
  RESMGR_RETURN_IF_ERROR(CheckTaints(TaintsOf(node), taints, rules));
  if (labels.empty() && annotations.empty() && !retainted) return std::nullopt;

  Json merge = {{"metadata", {{"resourceVersion", TextAt(node, {"metadata", "resourceVersion"})}}}};
  if (!labels.empty()) merge["metadata"]["labels"] = std::move(labels);
  if (!annotations.empty()) merge["metadata"]["annotations"] = std::move(annotations);
  if (retainted) merge["spec"]["taints"] = std::move(taints);
  return merge;
}

StatusOr<Json> PlanCapacityPatch(const std::map<std::string, std::string>& capacities,
                                 const KeyRules& rules) {
  Json capacity = Json::object();
  for (const auto& [name, quantity] : capacities) {
    RESMGR_RETURN_IF_ERROR(rules.Check("resource", name));
    if (const auto canonical = CanonicalQuantity(quantity); !canonical.ok()) {
      return InvalidArgument("resource {}: {}", Printable(name), Message(canonical.status()));
    }
    capacity[name] = quantity;
  }
  return Json{{"status", {{"capacity", std::move(capacity)}}}};
}

void NodeView::Seen(const Json& node) {
  const Json* const annotations = Find(node, {"metadata", "annotations"});
  const bool any = annotations != nullptr && annotations->is_object();
  seen_ = any ? *annotations : Json::object();
  for (auto at = unseen_.begin(); at != unseen_.end();) {
    const auto shown = seen_->find(at.key());
    const bool is_shown = shown == seen_->end() ? at->is_null() : *shown == *at;
    at = is_shown ? unseen_.erase(at) : std::next(at);
  }
}

void NodeView::Written(const Json& annotations) {
  unseen_.update(annotations);
  if (JsonText(unseen_).size() <= kMostUnseen) return;
  // The watch is too far behind: forget the view until it shows the node again.
  unseen_ = Json::object();
  seen_.reset();
}

std::optional<Json> NodeView::ChangedAnnotations(const std::vector<PatchOperation>& operations,
                                                 const Json& waiting) const {
  if (!seen_) return std::nullopt;
  Json before = *seen_;
  before.merge_patch(waiting);
  Json after = *seen_;
  after.merge_patch(unseen_);
  after.merge_patch(waiting);
  std::optional<Json> changes = ChangesOf(before, operations);
  const std::optional<Json> more = ChangesOf(after, operations);
  if (!changes || !more) return std::nullopt;
  changes->update(*more);
  return changes;
}

std::optional<Json> NodeView::ChangesOf(const Json& annotations,
                                        const std::vector<PatchOperation>& operations) const {
  const Json node = {{"metadata", {{"annotations", annotations}}}};
  const StatusOr<std::optional<Json>> merge = PlanNodePatch(node, operations, rules_);
  if (!merge.ok()) return std::nullopt;
  if (!*merge) return Json::object();
  const Json& metadata = (**merge)["metadata"];
  if ((*merge)->contains("spec") || metadata.contains("labels")) return std::nullopt;
  return metadata["annotations"];
}

}  // namespace resmgr::agent
