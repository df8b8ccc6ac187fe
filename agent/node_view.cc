// SPDX-License-Identifier: Apache-2.0
#include "agent/node_view.h"

#include <utility>

#include "pkg/base/json.h"

namespace resmgr::agent {
namespace {

// The limit of all annotations of an object together.
constexpr size_t kMostUnseen = size_t{256} << 10;

}  // namespace

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
