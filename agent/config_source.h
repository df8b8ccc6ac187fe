// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "agent/http.h"
#include "agent/object_watch.h"
#include "agent/pacing.h"
#include "agent/selection.h"
#include "pkg/sys/clock.h"

namespace resmgr::agent {

// Follows the node and the ConfigMaps that may apply to it, and reports which ConfigMap applies.
// Thread-compatible.
class ConfigSource {
 public:
  struct Options {
    std::string node{};
    std::string map_namespace{};  // -config-ns
    std::string map_name{};       // -configmap-name
    std::string group_label{};    // -label-name
    RetryOptions retry{};
    TokenBucket::Options group_limit{.burst = 5, .period = std::chrono::seconds(10)};
  };
  // Called with the map that applies now, nullopt for none: first when all objects are known, then
  // at each new version. While the map of a new group is not known yet, the last call counts.
  using Changed = std::function<void(const std::optional<ConfigMap>& map)>;

  // Called with the node's object each time that it is seen, before the calls of Changed that this
  // causes. Only its metadata is certain to be present.
  using NodeSeen = std::function<void(const Json& node)>;

  ConfigSource(HttpTransport& transport, Clock& timers, Options options, Changed changed,
               NodeSeen node_seen = nullptr);

  void Start();

 private:
  std::unique_ptr<ObjectWatch> FollowMap(const std::string& name, Seen<ConfigMap>& seen,
                                         const RetryOptions& retry);
  void NodeChanged(const Json* node);
  // Takes the node's present group. Each new group costs a list and a watch, so `group_limit_`
  // bounds how often this happens.
  void TakeGroup();
  void Decide();

  HttpTransport& transport_;
  Clock& timers_;
  const Options options_;
  const Changed changed_;
  const NodeSeen node_seen_;

  RetryGate gate_;
  ClusterView view_;
  std::string group_;  // the label's value; view_.group follows it
  TokenBucket group_limit_;
  EventLoop::HandlePtr group_timer_;
  bool decided_ = false;
  std::optional<ConfigMap> decision_;
  std::unique_ptr<ObjectWatch> node_watch_;
  std::unique_ptr<ObjectWatch> node_map_watch_;
  std::unique_ptr<ObjectWatch> group_map_watch_;
  std::unique_ptr<ObjectWatch> default_map_watch_;
};

}  // namespace resmgr::agent
