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
#include "pkg/model/resources.h"
#include "pkg/nri/protocol.h"
#include "pkg/resmgr/runtime_client.h"
#include "pkg/sys/event_loop.h"
#include "pkg/sys/lifetime.h"

namespace resmgr::nri {

namespace api = ::nri::pkg::api::v1alpha1;

class PluginConnection;

// Changes of containers on their way to the runtime: in the answer to the event that is being
// decided, which the runtime carries out before it goes on with that event; else in the plugin's
// own calls: one call of NRI for all changes of a turn of the loop, or a call of the CRI for each.
// If the runtime answers a call of NRI with an error, each of its changes is sent again, alone.
//
// NRI before 0.12.1 can lock a runtime up, for good, when a plugin calls UpdateContainers beside
// CRI calls: the two take the locks of the runtime and of its NRI in different orders (containerd
// issue 13733). Such a runtime is asked by its CRI. If the CRI has never worked, because nothing
// answers there within two seconds or the server has other containers, an update goes by NRI after
// all, and the log says so once. Loop's thread only.
class UpdateQueue {
 public:
  // The function to call when an update is done. Updates that are added together share one
  // function, which gets the index of the update.
  class Done {
   public:
    Done(std::shared_ptr<const RuntimeClient::UpdatesDone> shared, size_t index)
        : shared_(std::move(shared)), index_(index) {}
    void operator()(const Status& status) const { (*shared_)(index_, status); }

   private:
    std::shared_ptr<const RuntimeClient::UpdatesDone> shared_;
    size_t index_;
  };
  // Updates a container by the runtime's CRI; `done` runs later. kNotFound: the CRI's server has no
  // such container. kUnavailable: it cannot be reached.
  using ByCri = std::function<void(const ContainerId& id, const ResourceValues& values,
                                   std::function<void(Status)> done)>;

  // Called before the change's `done`, with values that the runtime has set or is told to set.
  using Applied = std::function<void(const ContainerId& id, const LinuxResources& resources)>;

  // Whether the runtime still has the container, as far as it has reported.
  using Has = std::function<bool(const ContainerId& id)>;

  UpdateQueue(EventLoop& loop, Applied applied, Has has)
      : loop_(loop), applied_(std::move(applied)), has_(std::move(has)) {}
  UpdateQueue(const UpdateQueue&) = delete;
  UpdateQueue& operator=(const UpdateQueue&) = delete;

  // Sets the connection for calls of NRI; it outlives this object.
  void SetConnection(PluginConnection& connection) { connection_ = &connection; }
  // Called when the runtime's NRI version is known. An empty function: there is no CRI to use.
  void SetHost(ApiVersion version, ByCri by_cri);
  // Whether updates go to the CRI first.
  bool asks_cri() const { return by_cri_ != nullptr; }

  // A container's values in each needed form. Containers that share CPUs get equal values one after
  // the other: then ChangeOf returns the same object.
  struct Change {
    ResourceValues values;
    LinuxResources resources;  // the values in the CRI's form
    api::LinuxContainerUpdate message;
    std::string encoded;
  };
  std::shared_ptr<const Change> ChangeOf(const ResourceValues& values);

  // `done` runs later. OK: the runtime has carried out the update, or gets it in the answer to an
  // event, in which case the runtime does not say whether it succeeded. kInternal: the runtime
  // could not carry it out. Any other error: the runtime could not be asked.
  void Add(const ContainerId& id, std::shared_ptr<const Change> change, Done done);
  // Reserves room for `more` updates.
  void Reserve(size_t more) { waiting_.reserve(waiting_.size() + more); }

  // Adds the waiting updates to the encoded answer to an event, as its field `field`. Updates of
  // the event's own container are left waiting: an answer cannot contain them.
  void TakeForAnswer(const ContainerId& own, uint32_t field, std::string& answer);

  // Whether the runtime reports this update only because its CRI was asked for it here. True once
  // for each request: a further update with the same CPUs and memory nodes is the kubelet's.
  bool TakeOwn(const ContainerId& id, const LinuxResources& resources);

 private:
  struct Waiting {
    ContainerId id;
    std::shared_ptr<const Change> change;
    Done done;
    bool by_nri = false;  // to be sent by NRI, since the CRI cannot be used
  };
  // An unanswered request to the CRI.
  struct Asked {
    std::shared_ptr<const Change> change;
    bool shown = false;
  };

  void FlushWithin(std::chrono::milliseconds time);
  void Flush();
  void FlushByCri(std::vector<Waiting> updates);
  void OnCriAnswer(const Waiting& update, const Status& status);
  void FlushByNri(std::vector<Waiting> all);
  void OnNriAnswer(const std::vector<Waiting>& updates,
                   const StatusOr<std::vector<api::ContainerUpdate>>& failed);
  static void AddUpdates(std::span<const Waiting> updates, uint32_t field, std::string& answer);
  void Finish(const Waiting& update, const Status& status) const;

  EventLoop& loop_;
  const Applied applied_;
  const Has has_;
  PluginConnection* connection_ = nullptr;
  ByCri by_cri_;
  bool cri_works_ = false;  // the CRI has carried out an update before
  bool warned_ = false;
  std::optional<EventLoop::Clock::time_point> cri_away_since_;
  std::multimap<std::string, Asked, std::less<>> asked_by_cri_;
  std::vector<Waiting> waiting_;
  std::shared_ptr<const Change> last_;
  EventLoop::HandlePtr flush_;
  bool flushes_at_once_ = false;  // flush_, if it is set, has no delay
  Lifetime lifetime_;             // posted work must not run after this object's end
};

}  // namespace resmgr::nri
