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
// store nothing is saved. Changes are gathered for a moment: if a container changes repeatedly, or
// ends at once, only its last value is encoded. Loop's thread only.
class StateWriter {
 public:
  using Call = OpenCalls::Kind;

  // All must outlive it; `state` may be nullptr. `renames`: RuntimeClient::Renames.
  StateWriter(EventLoop& loop, StateStore* state, ContainerStore& store, bool renames = false);
  // Passes the gathered changes to the store.
  ~StateWriter();
  StateWriter(const StateWriter&) = delete;
  StateWriter& operator=(const StateWriter&) = delete;

  // Whether there is a store.
  bool keeps() const { return state_ != nullptr; }
  // Called when the container has changed. Containers without an id are not saved. An exited
  // container is saved only while it is still bound, since it may be started again; its place is
  // left out, since others may have it by then.
  void MarkChanged(ContainerRecord& record);
  // Saves the marked containers at once.
  void SaveMarked();
  // Called before a client's update is sent, and before its reply. Saves the present state at once;
  // as long as the runtime may refuse the update, both the new request with its place and the
  // former ones are saved.
  void SaveUpdate(ContainerRecord& record);
  // Called before a creation that later stages changed is sent. Saves at once the client's request
  // by pod, name and attempt, since the container has no id yet.
  void SaveCreation(const Pod& pod, const Container& container, const AskedTexts& texts);
  // Erases the note after the creation has certainly failed.
  void EraseCreation(const ContainerRecord& record);
  void Erase(const ContainerId& id);
  // Erases the notes of all calls about the container; its saved data stays.
  void EndCalls(const ContainerId& id);
  // Erases the data of unlisted containers; called when all existing ones were adopted.
  void EraseUnlisted();

  // Saves the resources of the pod as a whole that a kubelet stated after the sandbox's creation,
  // since not every runtime reports them. Written at once.
  void SaveStated(const Pod& pod);
  // Saves the client's request for this pod if stages changed it. Written at once.
  void SaveAsked(const Pod& pod, const AskedTexts& texts);
  // The runtime's pod with the client's original values, and with the values that kubelets stated
  // later.
  Pod WithNotes(Pod listed) const;
  void ErasePod(const PodSandboxId& id);
  // Called when all sandboxes were listed and are in the store: erases the notes of other
  // sandboxes, and notes of creations whose containers are known.
  void EraseUnlistedPods();

  // Notes that a call about the container is about to be sent. Before a start, gathered changes are
  // saved: a kill after the start must not leave a running container without its record.
  void BeginCall(Call call, const ContainerId& id) {
    calls_.Begin(call, id);
    if (call == Call::kStart && !unsaved_.empty()) SaveAll();
  }
  // Notes the end of a call whose outcome is known. Written at the end of the loop's turn, together
  // with all other calls that end in it.
  void EndCall(Call call, const ContainerId& id);
  void EndUpdate(OpenCalls::Key key);
  // All open calls.
  OpenCalls& calls() const { return calls_; }

  // Whether stages or the runtime's own plugins have ever set numbers of a container here.
  bool OthersSetNumbers() const;
  // Returns the saved data of the container.
  std::optional<SavedContainer> Find(const ContainerId& id) const;
  // Returns the saved data of a container whose creation was not answered.
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
  OpenCalls own_calls_;  // used if there is no store
  OpenCalls& calls_;
  bool ends_posted_ = false;  // ended calls will be written
  Lifetime lifetime_;         // posted tasks may come after the writer is gone
};

}  // namespace resmgr
