// SPDX-License-Identifier: Apache-2.0
#include "pkg/nri/update_queue.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <iterator>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "pkg/base/field_writer.h"
#include "pkg/nri/convert.h"
#include "pkg/nri/plugin_connection.h"

namespace resmgr::nri {

void UpdateQueue::Add(const ContainerId& id, const ResourceValues& values, Done done) {
  if (last_ == nullptr || values != last_->values) {
    auto change = std::make_shared<Change>();
    change->values = values;
    change->resources = AsResources(values);
    AddTo(values, *change->message.mutable_resources());
    change->encoded = change->message.SerializeAsString();
    last_ = std::move(change);
  }
  waiting_.push_back({.id = id, .change = last_, .done = std::move(done)});
  if (flush_ == nullptr) flush_ = loop_.After(std::chrono::milliseconds(0), [this] { Flush(); });
}

void UpdateQueue::TakeForAnswer(const ContainerId& own, uint32_t field, std::string& answer) {
  if (waiting_.empty()) return;
  std::vector<Waiting> taken = std::exchange(waiting_, {});
  const auto is_own = [&own](const Waiting& each) { return each.id == own; };
  std::ranges::copy_if(taken, std::back_inserter(waiting_), is_own);
  std::erase_if(taken, is_own);
  if (waiting_.empty()) flush_.reset();
  {
    FieldWriter fields(answer);
    for (const Waiting& each : taken) {
      const size_t update = fields.Begin(field);
      fields.Bytes(api::ContainerUpdate::kContainerIdFieldNumber, each.id.value());
      fields.Bytes(api::ContainerUpdate::kLinuxFieldNumber, each.change->encoded);
      // One that has ended meanwhile must not fail the event.
      fields.Number(api::ContainerUpdate::kIgnoreFailureFieldNumber, 1);
      fields.End(update);
    }
  }
  loop_.Post([weak = std::weak_ptr<UpdateQueue*>(self_), taken = std::move(taken)] {
    for (const Waiting& each : taken) {
      if (const auto self = weak.lock()) (*self)->Finish(each, OkStatus());
    }
  });
}

void UpdateQueue::Finish(const Waiting& update, const Status& status) const {
  if (status.ok()) applied_(update.id, update.change->resources);
  update.done(status);
}

void UpdateQueue::Flush() {
  flush_.reset();
  if (waiting_.empty()) return;
  std::vector<api::ContainerUpdate> updates;
  const auto waiting = std::make_shared<std::vector<Waiting>>(std::exchange(waiting_, {}));
  for (const Waiting& each : *waiting) {
    api::ContainerUpdate& update = updates.emplace_back();
    update.set_container_id(std::string(each.id.value()));
    *update.mutable_linux() = each.change->message;
  }
  connection_->UpdateContainers(
      std::move(updates), [weak = std::weak_ptr<UpdateQueue*>(self_),
                           waiting](const StatusOr<std::vector<api::ContainerUpdate>>& failed) {
        std::set<std::string, std::less<>> ids;
        if (failed.ok()) {
          for (const api::ContainerUpdate& update : *failed)
            ids.insert(update.container_id());
        }
        for (const Waiting& each : *waiting) {
          Status status = failed.status();
          if (failed.ok() && ids.contains(each.id.value())) {
            status = Internal("the runtime could not update container {}", each.id.value());
          }
          if (const auto self = weak.lock()) (*self)->Finish(each, status);
        }
      });
}

}  // namespace resmgr::nri
