// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "pkg/api/nri.pb.h"
#include "pkg/base/ids.h"
#include "pkg/base/status.h"
#include "pkg/model/resource_values.h"
#include "pkg/model/resources.h"
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

  // What the runtime has done or is told to do, before the change's `done`.
  using Applied = std::function<void(const ContainerId& id, const LinuxResources& resources)>;

  UpdateQueue(EventLoop& loop, Applied applied)
      : loop_(loop), applied_(std::move(applied)), self_(std::make_shared<UpdateQueue*>(this)) {}
  UpdateQueue(const UpdateQueue&) = delete;
  UpdateQueue& operator=(const UpdateQueue&) = delete;

  // Where calls go; it outlives this.
  void SetConnection(PluginConnection& connection) { connection_ = &connection; }

  // `done` is run later: OK, the runtime has done it or is told to (an answer's updates have no
  // reply); Internal, it could not; or why it cannot be asked.
  void Add(const ContainerId& id, const ResourceValues& values, Done done);

  // Adds those of this turn of the loop to the encoded answer to an event, which has updates as
  // its field `field`. What is for the event's own container stays: an answer does not update that.
  void TakeForAnswer(const ContainerId& own, uint32_t field, std::string& answer);

 private:
  struct Change {
    ResourceValues values;
    LinuxResources resources;  // the same, as runtimes read them
    api::LinuxContainerUpdate message;
    std::string encoded;
  };
  struct Waiting {
    ContainerId id;
    std::shared_ptr<const Change> change;
    Done done;
  };

  void Flush();
  void Finish(const Waiting& update, const Status& status) const;

  EventLoop& loop_;
  const Applied applied_;
  PluginConnection* connection_ = nullptr;
  std::vector<Waiting> waiting_;
  // Containers that share CPUs get the same one after the other.
  std::shared_ptr<const Change> last_;
  EventLoop::HandlePtr flush_;
  std::shared_ptr<UpdateQueue*> self_;  // what is posted may come after the queue is gone
};

}  // namespace resmgr::nri
