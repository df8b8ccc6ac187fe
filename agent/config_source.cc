// SPDX-License-Identifier: Apache-2.0
#include "agent/config_source.h"

#include <functional>
#include <utility>

#include "pkg/base/parse.h"
#include "pkg/base/percent.h"
#include "pkg/config/config_file.h"
#include "pkg/kube/names.h"
#include "pkg/log/log.h"

namespace resmgr::agent {
namespace {

ConfigMap ReadMap(const Json& object) {
  ConfigMap map;
  map.name = TextAt(object, {"metadata", "name"});
  map.version = TextAt(object, {"metadata", "resourceVersion"});
  if (const Json* data = Find(object, {"data"}); data != nullptr && data->is_object()) {
    for (const auto& [key, value] : data->items()) {
      if (value.is_string()) map.data[key] = value.get<std::string>();
    }
  }
  const Json* const binary = Find(object, {"binaryData"});
  const bool has_binary = binary != nullptr && binary->is_object() && !binary->empty();
  map.problem = WhyNotDelivered(!map.data.empty(), has_binary ? binary->begin().key() : "");
  return map;
}

}  // namespace

ConfigSource::ConfigSource(HttpTransport& transport, Clock& timers, Options options,
                           Changed changed, NodeSeen node_seen)
    : transport_(transport),
      timers_(timers),
      options_(std::move(options)),
      changed_(std::move(changed)),
      node_seen_(std::move(node_seen)),
      gate_(options_.retry.outage, options_.retry.seed),
      group_limit_(options_.group_limit) {}

void ConfigSource::Start() {
  node_watch_ = std::make_unique<ObjectWatch>(
      transport_, timers_, gate_,
      ObjectWatch::Target{
          .collection = "/api/v1/nodes", .name = options_.node, .metadata_only = true},
      options_.retry, [this](const Json* node) { NodeChanged(node); });
  node_map_watch_ =
      FollowMap(NodeMapName(options_.map_name, options_.node), view_.node_map, options_.retry);
  default_map_watch_ =
      FollowMap(DefaultMapName(options_.map_name), view_.default_map, options_.retry);
  node_watch_->Start();
  node_map_watch_->Start();
  default_map_watch_->Start();
}

std::unique_ptr<ObjectWatch> ConfigSource::FollowMap(const std::string& name, Seen<ConfigMap>& seen,
                                                     const RetryOptions& retry) {
  RetryOptions of_map = retry;
  of_map.seed += std::hash<std::string>()(name);
  return std::make_unique<ObjectWatch>(
      transport_, timers_, gate_,
      ObjectWatch::Target{.collection = "/api/v1/namespaces/" +
                                        PercentEncoded(options_.map_namespace) + "/configmaps",
                          .name = name},
      of_map, [this, &seen](const Json* object) {
        seen.complete = true;
        seen.value.reset();
        if (object != nullptr) seen.value = ReadMap(*object);
        Decide();
      });
}

void ConfigSource::NodeChanged(const Json* node) {
  if (node == nullptr) {
    GetLogger("config").Warn("node {} does not exist in the cluster, so its group is unknown",
                             options_.node);
    return;
  }
  view_.node_seen = true;
  if (node_seen_) node_seen_(*node);
  group_ = TextAt(*node, {"metadata", "labels", options_.group_label});
  TakeGroup();
  Decide();
}

void ConfigSource::TakeGroup() {
  if (group_ == view_.group) {
    group_timer_.reset();
    return;
  }
  if (!group_.empty()) {
    const auto now = timers_.Steady();
    if (const auto wait = group_limit_.Wait(now); wait.count() > 0) {
      if (!group_timer_) {
        group_timer_ = timers_.After(wait, [this] {
          group_timer_.reset();
          TakeGroup();
          Decide();
        });
      }
      return;
    }
    group_limit_.Take(now);
  }
  group_timer_.reset();
  GetLogger("config").Info("the node's group is now \"{}\"", Printable(group_));
  view_.group = group_;
  view_.group_map = {};
  group_map_watch_.reset();
  if (view_.group.empty()) return;
  const std::string name = GroupMapName(options_.map_name, view_.group);
  if (!IsSubdomain(name)) {
    GetLogger("config").Warn(
        "no ConfigMap can be called {}: give the group a name of small letters, digits, - and .",
        Printable(name));
  }
  // The node is seen at a random time already, so the group's map needs no random wait of its own.
  RetryOptions retry = options_.retry;
  retry.start_spread = {};
  group_map_watch_ = FollowMap(name, view_.group_map, retry);
  group_map_watch_->Start();
}

void ConfigSource::Decide() {
  if (!view_.Complete()) return;
  const ConfigMap* selected = Select(view_);
  std::optional<ConfigMap> decision;
  if (selected != nullptr) decision = *selected;
  if (decided_ && decision == decision_) return;
  const bool only_version = decided_ && decision && decision_ && SameContent(*decision, *decision_);
  decided_ = true;
  decision_ = std::move(decision);
  if (only_version) {
    GetLogger("config").Debug("ConfigMap {} is now version {}, with the same content",
                              decision_->name, Printable(decision_->version));
  } else if (decision_) {
    GetLogger("config").Info("ConfigMap {} (version {}) applies", decision_->name,
                             Printable(decision_->version));
  } else {
    GetLogger("config").Warn("no ConfigMap applies: {} keeps its configuration", options_.node);
  }
  changed_(decision_);
}

}  // namespace resmgr::agent
