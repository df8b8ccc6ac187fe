// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <vector>

#include "agent/json_path.h"
#include "agent/node_patch.h"

namespace resmgr::agent {

// Tells what a patch of the node would change, as far as the watch has told what the node shows. An
// annotation that was written since and is not seen yet may be there or not, so a value that
// differs from the seen or from the written one is a change. Thread-compatible.
class NodeView {
 public:
  explicit NodeView(KeyRules rules) : rules_(std::move(rules)) {}

  // The node's object as the watch tells it.
  void Seen(const Json& node);
  // These annotations are sent to the API server, null for one to be removed.
  void Written(const Json& annotations);
  // The annotations that the operations change, null for one to be removed, if `waiting` are
  // written before; nullopt where the operations change something else, or cannot be judged by what
  // is known.
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
