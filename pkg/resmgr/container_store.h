// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <absl/container/flat_hash_map.h>
#include <absl/container/node_hash_map.h>

#include "pkg/base/ids.h"
#include "pkg/config/runtimes_config.h"
#include "pkg/model/container.h"
#include "pkg/model/snapshot.h"
#include "pkg/resmgr/container_record.h"

namespace resmgr {

// All pods and containers, by key, by the runtime's id and by pod. Records keep their address until
// they are erased. Every container has its pod here. Loop's thread only.
class ContainerStore {
 public:
  // `runtimes` has the overhead of pods for which the kubelet states none.
  explicit ContainerStore(RuntimesConfig runtimes = {});
  ~ContainerStore();
  ContainerStore(const ContainerStore&) = delete;
  ContainerStore& operator=(const ContainerStore&) = delete;

  // Adds the pod, or replaces the data of a known one.
  PodRecord& PutPod(Pod pod);
  PodRecord* FindPod(const PodSandboxId& id);
  // Notes whether the pod's sandbox is not ready any more.
  void SetStopped(PodRecord& pod, bool stopped);
  // The pod's containers must be gone.
  void ErasePod(const PodSandboxId& id);

  // Adds a container that is being created, with the next key. The caller fills in the rest: the
  // pod's id, and the container's own with SetId.
  ContainerRecord& Add(PodRecord& pod, std::string name);
  ContainerRecord* Find(ContainerKey key) const;
  // The same for a container that the pusher follows (ContainerRecord::push).
  ContainerRecord* FindFollowed(ContainerKey key) const;
  ContainerRecord* FindById(const ContainerId& id) const;
  // Finds by the whole id or, as runtimes do, by the beginning of the id of exactly one object.
  // nullptr if none or several begin so.
  ContainerRecord* Resolve(const ContainerId& id) const;
  PodRecord* Resolve(const PodSandboxId& id);
  // Gives this id, moved from `id`, to a container without one. False, with nothing changed:
  // another container has that id.
  bool SetId(ContainerRecord& record, ContainerId& id);
  // Renames the container, which becomes an attempt of another name in its pod.
  void Rename(ContainerRecord& record, std::string name);
  void Erase(ContainerKey key);

  // A new key that no container will get.
  ContainerKey UnusedKey() { return ContainerKey{++last_key_}; }

  // Marks an event about a record, so that an older list of the runtime does not overrule it.
  void Touch(ContainerRecord& record) { record.touched = ++clock_; }
  void Touch(PodRecord& pod) { pod.touched = ++clock_; }
  uint64_t clock() const { return clock_; }
  // Advances the clock for an event that does not overrule lists that were asked for before.
  uint64_t Tick() { return ++clock_; }

  // The name in the configuration of the runtime for this pod's handler; empty if there is only one
  // runtime.
  std::string_view RuntimeOf(const Pod& pod) const;

  // The store owns the records, which keep their addresses. Entries are plain bytes, so an erasure
  // moves them at once: with 240 containers 1,900 instructions less than pairs with owning
  // pointers, 4 % of those of a creation and a removal.
  struct Entry {
    ContainerKey key;
    ContainerRecord* record;
  };
  static_assert(std::is_trivially_copyable_v<Entry>);
  using Containers = std::vector<Entry>;  // ascending by key
  const Containers& containers() const { return containers_; }
  using Pods = absl::node_hash_map<PodSandboxId, PodRecord, TextHash>;
  const Pods& pods() const { return pods_; }

  // Everything, for introspection.
  const Snapshot& all() const { return all_; }
  // The containers that policies see, for which Placeable() holds.
  const Snapshot& placeable() const { return placeable_; }

 private:
  class View : public Snapshot {
   public:
    View(const ContainerStore& store, bool everything) : store_(store), everything_(everything) {}
    const Pod* FindPod(const PodSandboxId& id) const override;
    const Container* FindContainer(ContainerKey key) const override;
    void ForEachContainer(
        const std::function<void(const Pod&, const Container&)>& visit) const override;
    Overhead OverheadOf(const Pod& pod) const override { return store_.OverheadOf(pod); }
    HeldOverheads Overheads() const override { return store_.overheads_; }

   private:
    const ContainerStore& store_;
    const bool everything_;
  };

  static void EraseAttempt(const ContainerRecord& record);
  Overhead OverheadOf(const Pod& pod) const;
  void CountOverhead(PodRecord& pod);

  Containers::const_iterator Position(ContainerKey key) const;

  const RuntimesConfig runtimes_;
  HeldOverheads overheads_;  // the sum of PodRecord::counted
  Pods pods_;
  Containers containers_;
  // The container found last: a creation looks for its own five times in a row. A key of 0 names
  // none.
  mutable Entry last_found_{};
  // The keys are texts within the records, which do not change once they are set.
  absl::flat_hash_map<std::string_view, ContainerRecord*, TextHash> by_id_;
  uint64_t last_key_ = 0;
  uint64_t clock_ = 0;
  View all_;
  View placeable_;
};

}  // namespace resmgr
