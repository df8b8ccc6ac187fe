// SPDX-License-Identifier: Apache-2.0
#include "pkg/nri/update_queue.h"

#include <memory>
#include <set>
#include <string>
#include <utility>

#include "pkg/nri/convert.h"
#include "pkg/nri/plugin_connection.h"

namespace resmgr::nri {

void UpdateQueue::Add(const ContainerId& id, const ResourceValues& values, Done done) {
  Waiting added;
  added.update.set_container_id(std::string(id.value()));
  if (values != last_values_) {
    last_values_ = values;
    last_resources_.Clear();
    AddTo(values, last_resources_);
  }
  *added.update.mutable_linux()->mutable_resources() = last_resources_;
  added.done = std::move(done);
  waiting_.push_back(std::move(added));
  if (flush_ == nullptr) flush_ = loop_.After(std::chrono::milliseconds(0), [this] { Flush(); });
}

std::vector<api::ContainerUpdate> UpdateQueue::TakeForAnswer(const ContainerId& own) {
  std::vector<api::ContainerUpdate> updates;
  std::vector<Waiting> stay;
  for (Waiting& each : std::exchange(waiting_, {})) {
    if (each.update.container_id() == own.value()) {
      stay.push_back(std::move(each));
      continue;
    }
    // One that has ended meanwhile must not fail the event.
    each.update.set_ignore_failure(true);
    updates.push_back(std::move(each.update));
    loop_.Post([done = std::move(each.done)] { done(OkStatus()); });
  }
  waiting_ = std::move(stay);
  return updates;
}

void UpdateQueue::Flush() {
  flush_.reset();
  if (waiting_.empty()) return;
  std::vector<api::ContainerUpdate> updates;
  const auto waiting = std::make_shared<std::vector<Waiting>>(std::exchange(waiting_, {}));
  for (const Waiting& each : *waiting)
    updates.push_back(each.update);
  connection_->UpdateContainers(
      std::move(updates), [waiting](const StatusOr<std::vector<api::ContainerUpdate>>& failed) {
        std::set<std::string> ids;
        if (failed.ok()) {
          for (const api::ContainerUpdate& update : *failed)
            ids.insert(update.container_id());
        }
        for (const Waiting& each : *waiting) {
          const std::string& id = each.update.container_id();
          if (!failed.ok()) {
            each.done(failed.status());
          } else if (ids.contains(id)) {
            each.done(Internal("the runtime could not update container {}", id));
          } else {
            each.done(OkStatus());
          }
        }
      });
}

}  // namespace resmgr::nri
