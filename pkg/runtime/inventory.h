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

// The data that each view keeps about an object, at the view's slot.
using ViewData = std::array<std::shared_ptr<void>, 2>;

// A pod sandbox that the runtime has. After its removal the object lives on as long as somebody
// refers to it.
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

// A user of the inventory: it keeps data about the objects, and is notified of changes. If an
// object has no data of a view, the view does not know it yet or has given it up. The functions run
// on the loop's thread; they may change the view's data, but not the inventory.
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
  // An event reports a start of the container, by a call or by the runtime itself; an event may
  // come before or after the reply to the call.
  virtual void OnStarted(InventoryContainer& /*container*/) {}
  // An event reports that the container has ended; it still exists.
  virtual void OnStopped(InventoryContainer& /*container*/) {}
  // The object does not exist any more. If it is a pod, its containers are gone, too, and are not
  // reported one by one.
  virtual void OnGone(InventoryPod& /*pod*/) {}
  virtual void OnGone(InventoryContainer& /*container*/) {}

  // Whether the view is attached; otherwise it has no slot and no data.
  bool attached() const { return attached_; }
  // The place of its data, while it is attached.
  size_t slot() const { return slot_; }

 private:
  friend class Inventory;
  bool attached_ = false;
  size_t slot_ = 0;
};

// The pod sandboxes and containers that the runtime has (ADR 13), as calls that pass, events and
// lists show them. The views keep all other data with the objects. Its size is limited by the
// number of the runtime's objects. Without a view it holds nothing and asks nothing. Loop's thread
// only.
class Inventory {
 public:
  static constexpr std::chrono::milliseconds kRetry{1'000};  // pause after a failed list
  static constexpr size_t kLeastGrowth = 64;
  // Longer ids are refused: they come from clients and cannot be the runtime's.
  static constexpr size_t kLongestId = 256;
  // Limit of remembered removals; if there are more during a question, it counts as failed.
  static constexpr size_t kMostRemovals = 10'000;

  template <typename Object>
  using ById = std::map<std::string, std::shared_ptr<Object>, std::less<>>;

  // Both outlive this object.
  Inventory(Clock& clock, RuntimeAccess& runtime);

  // Reports all objects to the view, by a list, and later changes, until Detach, which drops the
  // view's data.
  void Attach(InventoryView& view);
  void Detach(InventoryView& view);

  // Adds an object that the runtime has created. A known object stays as it is.
  InventoryPodPtr AddPod(const PodSandboxId& id);
  InventoryContainerPtr AddContainer(InventoryPodPtr pod, const ContainerId& id);
  // Removes an object that does not exist any more; a pod with its containers.
  void Remove(const PodSandboxId& id);
  void Remove(const ContainerId& id);
  // A call about an existing object has ended: removes the object if it is gone, and lists
  // everything if the outcome is unclear. A view's stage calls this after it has found its data
  // about the object.
  void TakeOutcome(const Request& request, const Outcome& outcome);
  // An event of the runtime, directly or from a client's stream.
  void OnEvent(const ContainerEvent& event);
  // The container now has these values, by an update that no client called.
  void SetValues(const ContainerId& id, const ResourceValues& values);

  // Lists until the runtime answers. A list under way may miss recent changes, so another one
  // follows it.
  void Refresh();
  // Calls Refresh in the next turn of the loop, unless another user's list begins before.
  void RefreshSoon();
  // Called when another user of the runtime begins to list everything, with the status of all
  // objects. Returns a function that takes the result; if it is dropped without a call, the list
  // counts as failed. nullptr: the result is not needed.
  RuntimeAccess::Done<RuntimeAccess::Everything> TakeOthersList();
  // Calls RefreshSoon; `done` runs when that list has ended, or failed for the first time.
  void AfterRefresh(std::function<void(const Status&)> done);
  // Runs `done` once a list has succeeded.
  void WhenReady(std::function<void()> done);
  bool ready() const { return ready_; }

  // Finds by the runtime's id or an unambiguous beginning of it. nullptr: unknown.
  InventoryPodPtr FindPod(std::string_view id) const;
  InventoryContainerPtr FindContainer(std::string_view id) const;
  // Asks the runtime about an object, for the view with this slot: waits for the first list if that
  // is under way, and asks only if the object is not in it. kNotFound: it does not exist. `done`
  // never runs inside this call, and not after the end of this object.
  template <typename Object>
  using Found = std::function<void(StatusOr<std::shared_ptr<Object>>)>;
  void LookUp(size_t slot, const PodSandboxId& id, Found<InventoryPod> done);
  void LookUp(size_t slot, const ContainerId& id, Found<InventoryContainer> done);

  // The inventory's time, and the time of the question that led to the present OnFacts call.
  uint64_t time() const { return count_; }
  uint64_t asked_at() const { return asked_at_; }

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
  // Notes that the object exists at this time; adds an unknown one.
  InventoryPodPtr See(const PodSandboxId& id, uint64_t when);
  InventoryContainerPtr See(InventoryPodPtr pod, const ContainerId& id, uint64_t when);
  InventoryPodPtr Learn(const SandboxFacts& facts, uint64_t when);
  InventoryContainerPtr Learn(InventoryPodPtr pod, const ContainerFacts& facts, uint64_t when);
  // Called when the runtime is asked for a list or for one object: returns the time of the
  // question.
  uint64_t BeginQuestion();
  void EndQuestion(uint64_t begin);
  void NoteRemoval(std::string_view id);
  bool IsRemovedSince(std::string_view id, uint64_t begin) const;
  // OK if all removals since this time were remembered.
  Status CheckRemovalsSince(uint64_t begin) const;
  // OK if the object was not removed since this time: an answer to a question asked then is valid.
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
  // Times are numbers: the count of changes noticed so far.
  uint64_t count_ = 0;
  uint64_t asked_at_ = 0;
  std::multiset<uint64_t> open_;                          // the begin of each question under way
  std::map<std::string, uint64_t, std::less<>> removed_;  // removals since the oldest open question
  uint64_t not_noted_ = 0;  // when a removal was last left out of `removed_`
  bool ready_ = false;
  bool asking_ = false;
  bool again_ = false;
  size_t most_ = kLeastGrowth;  // with more objects than this, everything is listed
  Waiting waiting_;             // functions that wait for the next list
  // For the list under way: when it began, updates of unknown containers since then, and functions
  // that wait for its end.
  uint64_t begin_ = 0;
  std::map<std::string, LinuxResources, std::less<>> updated_;
  Waiting served_;
  EventLoop::HandlePtr retry_;  // set after a failed list
  EventLoop::HandlePtr soon_;   // set if a list begins in the next turn
  Lifetime lifetime_;
};

}  // namespace resmgr
