// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <vector>

#include "agent/json_path.h"
#include "agent/node_patch.h"

namespace resmgr::agent {

// What a patch of the node would change, as far as the watch has told what the node shows. What was
// written since and is not seen yet may be there or not, so whatever differs from the one or the
// other is a change. Thread-compatible.
class NodeView {
 public:
  explicit NodeView(KeyRules rules) : rules_(std::move(rules)) {}

  // The node's object as the watch tells it.
  void Seen(const Json& node);
  // These annotations are sent to the API server, null for one to be removed.
  void Written(const Json& annotations);
  // Which annotations the operations change, null for one to be removed, where `waiting` are to be
  // written before; nothing where they change something else, or cannot be judged by what is known.
  std::optional<Json> ChangedAnnotations(const std::vector<PatchOperation>& operations,
                                         const Json& waiting) const;

 private:
  std::optional<Json> ChangesOf(const Json& annotations,
                                const std::vector<PatchOperation>& operations) const;

  const KeyRules rules_;
  std::optional<Json> seen_;      // the annotations
  Json unseen_ = Json::object();  // of those that were written
};

}  // namespace resmgr::agent
