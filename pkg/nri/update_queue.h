// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <vector>

#include "pkg/api/nri.pb.h"
#include "pkg/base/ids.h"
#include "pkg/base/status.h"
#include "pkg/model/resource_values.h"
#include "pkg/sys/event_loop.h"

namespace resmgr::nri {

namespace api = ::nri::pkg::api::v1alpha1;

class PluginConnection;

// Changes of containers on their way to the runtime: in the answer to the event that is being
// decided, which the runtime carries out before it goes on with that event; else, those of one turn
// of the loop together, in a call of ours. Loop's thread only.
class UpdateQueue {
 public:
  using Done = std::function<void(Status)>;

  explicit UpdateQueue(EventLoop& loop) : loop_(loop) {}

  // Where calls go; it outlives this.
  void SetConnection(PluginConnection& connection) { connection_ = &connection; }

  // `done` is run later: OK, the runtime has done it or is told to (an answer's updates have no
  // reply); Internal, it could not; or why it cannot be asked.
  void Add(const ContainerId& id, const ResourceValues& values, Done done);

  // Those of this turn of the loop, for the answer to an event. What is for the event's own
  // container stays: an answer does not update that.
  std::vector<api::ContainerUpdate> TakeForAnswer(const ContainerId& own);

 private:
  struct Waiting {
    api::ContainerUpdate update;
    Done done;
  };

  void Flush();

  EventLoop& loop_;
  PluginConnection* connection_ = nullptr;
  std::vector<Waiting> waiting_;
  // Of the last change and its message: containers that share CPUs get the same one after the
  // other.
  ResourceValues last_values_;
  api::LinuxResources last_resources_;
  EventLoop::HandlePtr flush_;
};

}  // namespace resmgr::nri
