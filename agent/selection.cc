// SPDX-License-Identifier: Apache-2.0
#include "agent/selection.h"

#include <fmt/format.h>

namespace resmgr::agent {

std::string NodeMapName(std::string_view base, std::string_view node) {
  return fmt::format("{}.node.{}", base, node);
}

std::string GroupMapName(std::string_view base, std::string_view group) {
  return fmt::format("{}.group.{}", base, group);
}

std::string DefaultMapName(std::string_view base) {
  return fmt::format("{}.default", base);
}

bool SameContent(const ConfigMap& a, const ConfigMap& b) {
  return a.name == b.name && a.data == b.data && a.problem == b.problem;
}

bool ClusterView::Complete() const {
  return node_seen && node_map.complete && (group.empty() || group_map.complete) &&
         default_map.complete;
}

const ConfigMap* Select(const ClusterView& view) {
  if (!view.Complete()) return nullptr;
  if (view.node_map.value) return &*view.node_map.value;
  if (!view.group.empty() && view.group_map.value) return &*view.group_map.value;
  if (view.default_map.value) return &*view.default_map.value;
  return nullptr;
}

std::string_view ToString(Verdict::State state) {
  switch (state) {
    case Verdict::State::kUnknown:
      return "unknown";
    case Verdict::State::kNone:
      return "none";
    case Verdict::State::kPending:
      return "pending";
    case Verdict::State::kAccepted:
      return "accepted";
    case Verdict::State::kRejected:
      return "rejected";
  }
  return "";
}

std::string Complaint(const Verdict& verdict) {
  switch (verdict.state) {
    case Verdict::State::kUnknown:
      return "the node and its ConfigMaps have not been seen yet";
    case Verdict::State::kNone:
    case Verdict::State::kAccepted:
      return "";
    case Verdict::State::kPending:
      return fmt::format("ConfigMap {} is not delivered: {}", verdict.map, verdict.reason);
    case Verdict::State::kRejected:
      return fmt::format("ConfigMap {} is rejected: {}", verdict.map, verdict.reason);
  }
  return "";
}

}  // namespace resmgr::agent
