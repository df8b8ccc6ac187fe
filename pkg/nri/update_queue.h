// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "pkg/api/nri.pb.h"
#include "pkg/base/ids.h"
#include "pkg/base/status.h"
#include "pkg/model/resource_values.h"
#include "pkg/model/resources.h"
#include "pkg/nri/host_version.h"
#include "pkg/resmgr/runtime_client.h"
#include "pkg/sys/event_loop.h"
#include "pkg/sys/lifetime.h"

namespace resmgr::nri {

namespace api = ::nri::pkg::api::v1alpha1;

class PluginConnection;

// Changes of containers on their way to the runtime: in the answer to the event that is being
// decided, which the runtime carries out before it goes on with that event; else in calls of ours,
// of NRI for those of one turn of the loop together, or of the runtime's CRI one by one.
//
// NRI before 0.12.1 can lock a runtime up, for good, when a plugin calls UpdateContainers beside
// CRI calls: each of the two takes the locks of the runtime and of its NRI in another order
// (containerd issue 13733). Such a runtime is asked by its CRI. Where that has never worked,
// because nothing answers there within two seconds or what does has other containers, an update
// goes by NRI after all, and the log says so once. Loop's thread only.
class UpdateQueue {
 public:
  // Several updates that were asked for together have one function, which is told the index of the
  // one that is done.
  class Done {
   public:
    Done(std::shared_ptr<const RuntimeClient::UpdatesDone> shared, size_t index)
        : shared_(std::move(shared)), index_(index) {}
    void operator()(const Status& status) const { (*shared_)(index_, status); }

   private:
    std::shared_ptr<const RuntimeClient::UpdatesDone> shared_;
    size_t index_;
  };
  // Updates a container by the runtime's CRI: `done` is run later. NotFound: it has no such
  // container. Unavailable: it cannot be reached.
  using ByCri = std::function<void(const ContainerId& id, const ResourceValues& values,
                                   std::function<void(Status)> done)>;

  // What the runtime has done or is told to do, before the change's `done`.
  using Applied = std::function<void(const ContainerId& id, const LinuxResources& resources)>;

  // Whether the runtime still has the container, by what it has told.
  using Has = std::function<bool(const ContainerId& id)>;

  UpdateQueue(EventLoop& loop, Applied applied, Has has)
      : loop_(loop), applied_(std::move(applied)), has_(std::move(has)) {}
  UpdateQueue(const UpdateQueue&) = delete;
  UpdateQueue& operator=(const UpdateQueue&) = delete;

  // Where calls of NRI go; it outlives this.
  void SetConnection(PluginConnection& connection) { connection_ = &connection; }
  // The runtime has told its NRI's version. An empty function: there is no other way than NRI.
  void SetHost(ApiVersion version, ByCri by_cri);
  // Whether updates go there first.
  bool asks_cri() const { return by_cri_ != nullptr; }

  // The values that a container gets, in each form that is needed. Containers that share CPUs get
  // the same values one after the other: then ChangeOf returns the same object.
  struct Change {
    ResourceValues values;
    LinuxResources resources;  // the same, as runtimes read them
    api::LinuxContainerUpdate message;
    std::string encoded;
  };
  std::shared_ptr<const Change> ChangeOf(const ResourceValues& values);

  // `done` is run later: OK, the runtime has done it or is told to (an answer's updates have no
  // reply); Internal, it could not; or why it cannot be asked.
  void Add(const ContainerId& id, std::shared_ptr<const Change> change, Done done);
  // So many are about to be added.
  void Reserve(size_t more) { waiting_.reserve(waiting_.size() + more); }

  // Adds those of this turn of the loop to the encoded answer to an event, which has updates as
  // its field `field`. What is for the event's own container stays: an answer does not update that.
  void TakeForAnswer(const ContainerId& own, uint32_t field, std::string& answer);

  // Whether the runtime shows this update of a container because it was asked for by its CRI. True
  // once for each: the next one with the same values is the kubelet's.
  bool TakeOwn(const ContainerId& id, const LinuxResources& resources);

 private:
  struct Waiting {
    ContainerId id;
    std::shared_ptr<const Change> change;
    Done done;
    bool by_nri = false;  // the CRI cannot do it
  };
  // Asked for by the CRI and not answered.
  struct Asked {
    std::shared_ptr<const Change> change;
    bool shown = false;
  };

  void FlushWithin(std::chrono::milliseconds time);
  void Flush();
  void FlushByCri(std::vector<Waiting> updates);
  void OnCriAnswer(const Waiting& update, const Status& status);
  void FlushByNri(std::vector<Waiting> all);
  static void AddUpdates(std::span<const Waiting> updates, uint32_t field, std::string& answer);
  void Finish(const Waiting& update, const Status& status) const;

  EventLoop& loop_;
  const Applied applied_;
  const Has has_;
  PluginConnection* connection_ = nullptr;
  ByCri by_cri_;
  bool cri_works_ = false;  // it has carried out an update, ever
  bool warned_ = false;
  std::optional<EventLoop::Clock::time_point> cri_away_since_;
  std::multimap<std::string, Asked, std::less<>> asked_by_cri_;
  std::vector<Waiting> waiting_;
  std::shared_ptr<const Change> last_;
  EventLoop::HandlePtr flush_;
  bool flushes_at_once_ = false;  // where it is set
  Lifetime lifetime_;             // what is posted may come after the queue is gone
};

}  // namespace resmgr::nri
