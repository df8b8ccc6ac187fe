// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace resmgr::agent {

// What the daemon gets of a ConfigMap.
struct ConfigMap {
  std::string name{};
  std::string version{};  // resourceVersion, opaque
  std::map<std::string, std::string> data{};
  // Why it cannot be delivered, whatever the daemon would say; empty: it can.
  std::string problem{};

  friend bool operator==(const ConfigMap&, const ConfigMap&) = default;
};

// The same for the daemon: versions also differ when only metadata changed.
bool SameContent(const ConfigMap& a, const ConfigMap& b);

// The names of the ConfigMaps of a node, most specific first. `base` is -configmap-name.
std::string NodeMapName(std::string_view base, std::string_view node);
std::string GroupMapName(std::string_view base, std::string_view group);
std::string DefaultMapName(std::string_view base);

// One thing that is watched: not seen yet, seen to be absent, or there.
template <typename T>
struct Seen {
  bool complete = false;
  std::optional<T> value{};
};

// All that the choice depends on. `group` is the value of the node's label, empty without one; the
// group's map counts only when there is a group.
struct ClusterView {
  bool node_seen = false;
  std::string group{};
  Seen<ConfigMap> node_map{};
  Seen<ConfigMap> group_map{};
  Seen<ConfigMap> default_map{};

  // Whether anything can be concluded from it.
  bool Complete() const;
};

// The map that wins: the node's, else its group's, else the default one; nullptr when there is
// none. Maps are never merged. Only for a complete view: before, an absent map could be one that
// has not arrived yet, and the node would get a configuration that was not meant for it.
const ConfigMap* Select(const ClusterView& view);

}  // namespace resmgr::agent
