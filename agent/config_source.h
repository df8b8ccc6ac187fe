// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "agent/http.h"
#include "agent/object_watch.h"
#include "agent/selection.h"
#include "agent/timers.h"

namespace resmgr::agent {

// Follows the node and the ConfigMaps that may apply to it, and tells which one does.
// Thread-compatible.
class ConfigSource {
 public:
  struct Options {
    std::string node{};
    std::string map_namespace{};  // -config-ns
    std::string map_name{};       // -configmap-name
    std::string group_label{};    // -label-name
    RetryOptions retry{};
  };
  // The map that applies now; nothing: no map does. First when all is known, then with each other
  // version. While something is not known (again, after a change of the group), the last word
  // counts.
  using Changed = std::function<void(const std::optional<ConfigMap>& map)>;

  // The object of the node was deleted and created again.
  using NodeMadeAnew = std::function<void()>;

  ConfigSource(HttpTransport& transport, Timers& timers, Options options, Changed changed,
               NodeMadeAnew node_made_anew = nullptr);

  void Start();

 private:
  std::unique_ptr<ObjectWatch> FollowMap(const std::string& name, Seen<ConfigMap>& seen);
  void NodeChanged(const Json* node);
  void Decide();

  HttpTransport& transport_;
  Timers& timers_;
  const Options options_;
  const Changed changed_;
  const NodeMadeAnew node_made_anew_;

  ClusterView view_;
  std::string node_uid_;
  bool decided_ = false;
  std::optional<ConfigMap> decision_;
  std::unique_ptr<ObjectWatch> node_watch_;
  std::unique_ptr<ObjectWatch> node_map_watch_;
  std::unique_ptr<ObjectWatch> group_map_watch_;
  std::unique_ptr<ObjectWatch> default_map_watch_;
};

}  // namespace resmgr::agent
