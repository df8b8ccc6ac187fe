// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "pkg/resmgr/container_store.h"
#include "pkg/state/open_calls.h"
#include "pkg/state/state_store.h"
#include "pkg/sys/event_loop.h"
#include "pkg/sys/lifetime.h"

namespace resmgr {

// Saves changed containers in the state store, and finds them again after a restart. Without a
// store nothing is saved. Changes are gathered for a moment: of a container that changes again and
// again, or that ends at once, only the last value is encoded. Loop's thread only.
class StateWriter {
 public:
  using Call = OpenCalls::Kind;

  // All must outlive it; `state` may be nullptr. `renames`: RuntimeClient::Renames.
  StateWriter(EventLoop& loop, StateStore* state, ContainerStore& store, bool renames = false);
  // Hands the gathered changes over.
  ~StateWriter();
  StateWriter(const StateWriter&) = delete;
  StateWriter& operator=(const StateWriter&) = delete;

  // Whether anything is kept.
  bool keeps() const { return state_ != nullptr; }
  // The container changed. A container without an id is not saved. One that has exited is saved
  // only while it is still bound, since it may be started again: without its place, which others
  // may have by then.
  void MarkChanged(ContainerRecord& record);
  // Saves the marked containers at once.
  void SaveMarked();
  // Called before a client's update is sent, and before its reply. Saves the present state at once;
  // as long as the runtime may refuse the update, the new request and its place are saved beside
  // the former ones.
  void SaveUpdate(ContainerRecord& record);
  // Called before a creation that later stages changed is sent. Saves at once the client's request
  // by pod, name and attempt, since the container has no id yet.
  void SaveCreation(const Pod& pod, const Container& container, const AskedTexts& texts);
  // The creation failed for certain.
  void EraseCreation(const ContainerRecord& record);
  void Erase(const ContainerId& id);
  // Notes that the container has no open calls any more; its saved data stays.
  void EndCalls(const ContainerId& id);
  // Called when all existing containers were adopted.
  void EraseUnlisted();

  // Saves the resources of the pod as a whole that a kubelet stated after the sandbox's creation,
  // since not every runtime reports them. Written at once.
  void SaveStated(const Pod& pod);
  // Saves the client's request for this pod, where stages changed it. Written at once.
  void SaveAsked(const Pod& pod, const AskedTexts& texts);
  // The runtime's pod with the client's original values, and with the values that kubelets stated
  // later.
  Pod WithNotes(Pod listed) const;
  void ErasePod(const PodSandboxId& id);
  // All sandboxes were listed and are in the store. Erases the notes of other sandboxes, and those
  // of creations whose containers are known.
  void EraseUnlistedPods();

  // Notes that a call about the container is about to be sent. Before a start, gathered changes are
  // saved: a kill after the start must not leave a running container without its record.
  void BeginCall(Call call, const ContainerId& id) {
    calls_.Begin(call, id);
    if (call == Call::kStart && !unsaved_.empty()) SaveAll();
  }
  bool AnyCallOpen() const { return calls_.size() > 0; }
  // Notes that an update is about to be sent.
  void BeginUpdate(OpenCalls::Key key) { calls_.Begin(key); }
  // Notes the end of a call whose outcome is known: written at the end of the loop's turn, together
  // with all calls that end in it.
  void EndCall(Call call, const ContainerId& id);
  void EndUpdate(OpenCalls::Key key);
  // Between these, calls that begin are noted with one write: none of them is sent before
  // WriteCalls.
  void GatherCalls() { calls_.Gather(); }
  void WriteCalls() { calls_.Write(); }
  bool IsCallOpen(Call call, const ContainerId& id) const { return calls_.Contains(call, id); }
  // Whether all calls that an earlier daemon may have left open are known. Where they are not, any
  // call may be.
  bool AllCallsKnown() const { return calls_.complete(); }

  // Whether stages or the runtime's own plugins have ever set numbers of a container here.
  bool OthersSetNumbers() const;
  // Returns the record that was kept of the container.
  std::optional<SavedContainer> Find(const ContainerId& id) const;
  // Returns the record of a container whose creation was not answered.
  std::optional<SavedContainer> FindCreation(const PodSandboxId& pod, std::string_view name,
                                             uint32_t attempt) const;
  // Visits all records.
  void ForEach(
      const std::function<void(std::string_view id, const SavedContainer& saved)>& visit) const;

 private:
  bool IsCreationOpen(std::string_view name) const;
  void NoteOthers(const NumbersSetLater& later);
  void Save(ContainerRecord& record);
  void PutUnchanged(const ContainerRecord& record);
  void PutConfirmed(ContainerRecord& record);
  void Put(const ContainerRecord& record, const AskedView* asked);
  void SaveAll();
  void SaveSoon();
  void WriteEndsSoon();

  EventLoop& loop_;
  StateStore* const state_;
  ContainerStore& store_;
  const bool renames_;
  std::vector<ContainerKey> unsaved_;
  EventLoop::HandlePtr timer_;
  OpenCalls own_calls_;  // without a state
  OpenCalls& calls_;
  bool ends_posted_ = false;  // ended calls will be written
  Lifetime lifetime_;         // posted tasks may come after the writer is gone
};

}  // namespace resmgr
