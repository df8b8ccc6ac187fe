// SPDX-License-Identifier: Apache-2.0
#include "agent/config_source.h"

#include <functional>
#include <utility>

#include "pkg/base/parse.h"
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
  const Json* binary = Find(object, {"binaryData"});
  if (binary != nullptr && binary->is_object() && !binary->empty()) {
    map.problem = fmt::format(
        "{} is in binaryData, where kubectl puts files that are not UTF-8: the configuration must "
        "be text",
        Printable(binary->begin().key(), 64));
  } else if (map.data.empty()) {
    map.problem = "it has no data; delete it where another ConfigMap should apply";
  }
  return map;
}

}  // namespace

ConfigSource::ConfigSource(HttpTransport& transport, Timers& timers, Options options,
                           Changed changed, NodeMadeAnew node_made_anew)
    : transport_(transport),
      timers_(timers),
      options_(std::move(options)),
      changed_(std::move(changed)),
      node_made_anew_(std::move(node_made_anew)) {}

void ConfigSource::Start() {
  node_watch_ = std::make_unique<ObjectWatch>(
      transport_, timers_,
      ObjectWatch::Target{.collection = "/api/v1/nodes", .name = options_.node}, options_.retry,
      [this](const Json* node) { NodeChanged(node); });
  node_map_watch_ = FollowMap(NodeMapName(options_.map_name, options_.node), view_.node_map);
  default_map_watch_ = FollowMap(DefaultMapName(options_.map_name), view_.default_map);
  node_watch_->Start();
  node_map_watch_->Start();
  default_map_watch_->Start();
}

std::unique_ptr<ObjectWatch> ConfigSource::FollowMap(const std::string& name,
                                                     Seen<ConfigMap>& seen) {
  RetryOptions retry = options_.retry;
  retry.seed += std::hash<std::string>()(name);
  return std::make_unique<ObjectWatch>(
      transport_, timers_,
      ObjectWatch::Target{
          .collection = "/api/v1/namespaces/" + UrlEncode(options_.map_namespace) + "/configmaps",
          .name = name},
      retry, [this, &seen](const Json* object) {
        seen.complete = true;
        seen.value.reset();
        if (object != nullptr) seen.value = ReadMap(*object);
        Decide();
      });
}

void ConfigSource::NodeChanged(const Json* node) {
  if (node == nullptr) {
    GetLogger("config").Warn("there is no node {} in the cluster: its group is unknown",
                             options_.node);
    return;
  }
  std::string uid = TextAt(*node, {"metadata", "uid"});
  // What was written on the former object is not on this one.
  if (view_.node_seen && uid != node_uid_ && node_made_anew_) node_made_anew_();
  node_uid_ = std::move(uid);
  std::string group = TextAt(*node, {"metadata", "labels", options_.group_label});
  const bool changed = group != view_.group;
  view_.node_seen = true;
  if (changed) {
    GetLogger("config").Info("the node's group is now \"{}\"", Printable(group));
    view_.group = std::move(group);
    view_.group_map = {};
    group_map_watch_.reset();
    if (!view_.group.empty()) {
      group_map_watch_ = FollowMap(GroupMapName(options_.map_name, view_.group), view_.group_map);
      group_map_watch_->Start();
    }
  }
  Decide();
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
