// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace resmgr::agent {

// The part of a ConfigMap that the daemon gets.
struct ConfigMap {
  std::string name{};
  std::string version{};  // resourceVersion, opaque
  std::map<std::string, std::string> data{};
  // The reason why the map cannot be delivered, whatever the daemon would answer; empty if it can
  // be.
  std::string problem{};

  friend bool operator==(const ConfigMap&, const ConfigMap&) = default;
};

// Whether both are equal for the daemon: versions also differ when only metadata changed.
bool SameContent(const ConfigMap& a, const ConfigMap& b);

// The names of the ConfigMaps of a node, most specific first. `base` is -configmap-name.
std::string NodeMapName(std::string_view base, std::string_view node);
std::string GroupMapName(std::string_view base, std::string_view group);
std::string DefaultMapName(std::string_view base);

// The state of one watched object: not seen yet, absent, or present.
template <typename T>
struct Seen {
  bool complete = false;
  std::optional<T> value{};
};

// The inputs of the choice. `group` is the value of the node's label, empty without one; the
// group's map counts only when there is a group.
struct ClusterView {
  bool node_seen = false;
  std::string group{};
  Seen<ConfigMap> node_map{};
  Seen<ConfigMap> group_map{};
  Seen<ConfigMap> default_map{};

  // Whether enough objects are known to choose.
  bool Complete() const;
};

// The map that wins: the node's, else its group's, else the default one; nullptr for none. Maps are
// never merged. Requires a complete view: otherwise an absent map could be one that has not arrived
// yet, and the node would get a configuration that was not meant for it.
const ConfigMap* Select(const ClusterView& view);

// The state of the configuration that applies to the node.
struct Verdict {
  enum class State {
    kUnknown,   // not all of the cluster has been seen yet
    kNone,      // no ConfigMap applies; the daemon keeps its configuration
    kPending,   // the daemon has not been reached
    kAccepted,  // the daemon runs it
    kRejected,  // the daemon keeps its former configuration
  };

  State state = State::kUnknown;
  std::string map{};      // its name; empty with kUnknown and kNone
  std::string version{};  // its resourceVersion
  // The version that brought the map's content; later versions differ in metadata only.
  std::string content_version{};
  std::string reason{};  // for kPending and kRejected

  friend bool operator==(const Verdict&, const Verdict&) = default;
};

// "accepted", for the annotation and logs.
std::string_view ToString(Verdict::State state);

// Empty if all is well, else one line that describes the problem.
std::string Complaint(const Verdict& verdict);

}  // namespace resmgr::agent
