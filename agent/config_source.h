// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "agent/http.h"
#include "agent/object_watch.h"
#include "agent/retry_gate.h"
#include "agent/selection.h"
#include "agent/token_bucket.h"
#include "pkg/sys/clock.h"

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
    TokenBucket::Options group_limit{.burst = 5, .period = std::chrono::seconds(10)};
  };
  // The map that applies now; nothing: no map does. First when all is known, then with each other
  // version. While something is not known (again, after a change of the group), the last word
  // counts.
  using Changed = std::function<void(const std::optional<ConfigMap>& map)>;

  // The node's object, each time that it is seen, and before what follows from it is told. Its
  // metadata is there, perhaps nothing else.
  using NodeSeen = std::function<void(const Json& node)>;

  ConfigSource(HttpTransport& transport, Clock& timers, Options options, Changed changed,
               NodeSeen node_seen = nullptr);

  void Start();

 private:
  std::unique_ptr<ObjectWatch> FollowMap(const std::string& name, Seen<ConfigMap>& seen,
                                         const RetryOptions& retry);
  void NodeChanged(const Json* node);
  // Each group that is new costs a list and a watch, so changes are taken no more often than
  // `group_limit_` says; the last one counts.
  void TakeGroup();
  void Decide();

  HttpTransport& transport_;
  Clock& timers_;
  const Options options_;
  const Changed changed_;
  const NodeSeen node_seen_;

  RetryGate gate_;
  ClusterView view_;
  std::string group_;  // of the label; view_.group follows
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
