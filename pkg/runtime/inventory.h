// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "pkg/base/ids.h"
#include "pkg/base/status.h"
#include "pkg/log/log.h"
#include "pkg/model/request.h"
#include "pkg/model/resources.h"
#include "pkg/pipeline/runtime_access.h"
#include "pkg/pipeline/stage.h"
#include "pkg/resmgr/runtime_client.h"
#include "pkg/sys/clock.h"
#include "pkg/sys/lifetime.h"

namespace resmgr {

// The data that each view keeps with an object, by the view's slot.
using ViewData = std::array<std::shared_ptr<void>, 2>;

// A pod sandbox that the runtime has. A removed one lives on with its last user.
struct InventoryPod {
  const PodSandboxId id;
  uint64_t seen = 0;  // when it was last known to exist, in the inventory's time
  ViewData data{};
};
using InventoryPodPtr = std::shared_ptr<InventoryPod>;

// A container that the runtime has.
struct InventoryContainer {
  const ContainerId id;
  const InventoryPodPtr pod;
  uint64_t seen = 0;
  ViewData data{};
};
using InventoryContainerPtr = std::shared_ptr<InventoryContainer>;

// The data of one user of the inventory about the objects, and how it learns of changes. An object
// without data of this view is one that the view does not know yet, or has given up. The functions
// run on the loop's thread; they may change the view's data, but not the inventory.
class InventoryView {
 public:
  InventoryView() = default;
  virtual ~InventoryView() = default;
  InventoryView(const InventoryView&) = delete;
  InventoryView& operator=(const InventoryView&) = delete;

  // The runtime has reported the object: the view adds or completes its data. A container's pod has
  // been reported to the view before, or was added by it.
  virtual void OnFacts(InventoryPod& pod, const SandboxFacts& facts) = 0;
  virtual void OnFacts(InventoryContainer& container, const ContainerFacts& facts) = 0;
  // The runtime has these values in force, by an update that no client called.
  virtual void OnValues(InventoryContainer& /*container*/, const LinuxResources& /*values*/) {}
  // An event reports that the container has ended; it still exists.
  virtual void OnStopped(InventoryContainer& /*container*/) {}
  // The object does not exist any more. A pod takes its containers with it, without a call for
  // each.
  virtual void OnGone(InventoryPod& /*pod*/) {}
  virtual void OnGone(InventoryContainer& /*container*/) {}

  // Whether the view is attached; without a slot it has no data.
  bool attached() const { return attached_; }
  // The place of its data, while it is attached.
  size_t slot() const { return slot_; }

 private:
  friend class Inventory;
  bool attached_ = false;
  size_t slot_ = 0;
};

// The pod sandboxes and containers that the runtime has (ADR 13): their existence, from calls that
// pass, events and lists. The views keep everything else with the objects. Bounded by the runtime's
// number of them. Without a view it holds nothing and asks nothing. Loop's thread only.
class Inventory {
 public:
  static constexpr std::chrono::milliseconds kRetry{1'000};  // pause after a failed list
  static constexpr size_t kLeastGrowth = 64;
  // Clients write ids, too. A longer id cannot be a runtime's.
  static constexpr size_t kLongestId = 256;
  // Limit of noted removals; with more of them a question counts as failed.
  static constexpr size_t kMostRemovals = 10'000;

  template <typename Object>
  using ById = std::map<std::string, std::shared_ptr<Object>, std::less<>>;

  // Both outlive this object.
  Inventory(Clock& clock, RuntimeAccess& runtime);

  // Reports all objects to the view, by a list, and later changes, until Detach, which drops the
  // view's data.
  void Attach(InventoryView& view);
  void Detach(InventoryView& view);

  // Adds an object that the runtime has created. A known one stays.
  InventoryPodPtr AddPod(const PodSandboxId& id);
  InventoryContainerPtr AddContainer(InventoryPodPtr pod, const ContainerId& id);
  // Removes one that does not exist any more; a pod with its containers.
  void Remove(const PodSandboxId& id);
  void Remove(const ContainerId& id);
  // A call about an existing object has ended: removes an object that is gone, and lists everything
  // if the outcome is unclear. A view's stage calls this after it has found its data.
  void TakeOutcome(const Request& request, const Outcome& outcome);
  // An event of the runtime, directly or from a client's stream.
  void OnEvent(const ContainerEvent& event);
  // The container has these values now, by an update that no client called.
  void SetValues(const ContainerId& id, const ResourceValues& values);

  // Lists until the runtime answers. A list under way may miss recent changes, so another one
  // follows it.
  void Refresh();
  // Calls Refresh in the next turn, unless the list of another user begins until then.
  void RefreshSoon();
  // Another user of the runtime begins to list everything, with the status of all objects. The
  // function takes the result; dropping it unused is a failure. nullptr: it is not needed.
  RuntimeAccess::Done<RuntimeAccess::Everything> TakeOthersList();
  // Calls RefreshSoon; `done` runs when that list has ended, or failed for the first time.
  void AfterRefresh(std::function<void(const Status&)> done);
  // Runs `done` once a list has succeeded.
  void WhenReady(std::function<void()> done);
  bool ready() const { return ready_; }

  // Finds by the runtime's id or an unambiguous beginning of it. nullptr: unknown.
  InventoryPodPtr FindPod(std::string_view id) const;
  InventoryContainerPtr FindContainer(std::string_view id) const;
  // Finds an object about which the view with this slot has data: waits for the first list if that
  // is under way, then asks the runtime for this one. kNotFound: it does not exist. `done` never
  // runs inside this call, and not after the end of this object.
  template <typename Object>
  using Found = std::function<void(StatusOr<std::shared_ptr<Object>>)>;
  void LookUp(size_t slot, const PodSandboxId& id, Found<InventoryPod> done);
  void LookUp(size_t slot, const ContainerId& id, Found<InventoryContainer> done);

  const ById<InventoryPod>& pods() const { return pods_; }
  const ById<InventoryContainer>& containers() const { return containers_; }

 private:
  using Waiting = std::vector<std::function<void(const Status&)>>;

  void BeginList();
  void Ask();
  void Take(const StatusOr<RuntimeAccess::Everything>& everything);
  void TakeList(const RuntimeAccess::Everything& everything);
  void DropMissing();
  void NoteGrowth();
  // Marks the object as one that exists at this time, and adds an unknown one.
  InventoryPodPtr See(const PodSandboxId& id, uint64_t when);
  InventoryContainerPtr See(InventoryPodPtr pod, const ContainerId& id, uint64_t when);
  InventoryPodPtr Learn(const SandboxFacts& facts, uint64_t when);
  InventoryContainerPtr Learn(InventoryPodPtr pod, const ContainerFacts& facts, uint64_t when);
  // The runtime is asked for a list or for one object: returns the time of this.
  uint64_t BeginQuestion();
  void EndQuestion(uint64_t begin);
  void NoteRemoval(std::string_view id);
  bool IsRemovedSince(std::string_view id, uint64_t begin) const;
  // Whether all removals since then are known.
  Status CheckRemovalsSince(uint64_t begin) const;
  // Whether an answer to a question of this time shows that the object exists.
  Status CheckKeptSince(std::string_view id, uint64_t begin) const;
  void AskFor(const PodSandboxId& id, Found<InventoryPod> done);
  void AskFor(const ContainerId& id, Found<InventoryContainer> done);
  bool IsKnownToAll(const InventoryPod& pod) const;

  Clock& clock_;
  RuntimeAccess& runtime_;
  Logger& log_;
  std::vector<InventoryView*> views_;
  ById<InventoryPod> pods_;
  ById<InventoryContainer> containers_;
  // Times are counts of what is noticed.
  uint64_t count_ = 0;
  std::multiset<uint64_t> open_;                          // the begin of each question under way
  std::map<std::string, uint64_t, std::less<>> removed_;  // removed since the oldest of them
  uint64_t not_noted_ = 0;  // when a removal was last left out of `removed_`
  bool ready_ = false;
  bool asking_ = false;
  bool again_ = false;
  size_t most_ = kLeastGrowth;  // number of objects that causes the next list
  Waiting waiting_;             // for the next list
  // About the list under way: its begin, updates since then of unknown containers, and functions
  // that wait for its end.
  uint64_t begin_ = 0;
  std::map<std::string, LinuxResources, std::less<>> updated_;
  Waiting served_;
  EventLoop::HandlePtr retry_;  // after a failure
  EventLoop::HandlePtr soon_;   // for the next turn
  Lifetime lifetime_;
};

}  // namespace resmgr
