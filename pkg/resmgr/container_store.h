// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <absl/container/flat_hash_map.h>
#include <absl/container/node_hash_map.h>

#include "pkg/base/text_hash.h"
#include "pkg/config/runtimes_config.h"
#include "pkg/model/container.h"
#include "pkg/model/snapshot.h"
#include "pkg/resmgr/container_record.h"

namespace resmgr {

// All pods and containers, by key, by the runtime's id and by pod. Records keep their address until
// they are erased. Every container has its pod here. Loop's thread only.
class ContainerStore {
 public:
  // `runtimes` tells the overhead of pods of which the kubelet states none.
  explicit ContainerStore(RuntimesConfig runtimes = {});
  ContainerStore(const ContainerStore&) = delete;
  ContainerStore& operator=(const ContainerStore&) = delete;

  // Adds the pod, or replaces what is known of it.
  PodRecord& PutPod(Pod pod);
  PodRecord* FindPod(const PodSandboxId& id);
  // Its sandbox is not ready any more.
  void MarkStopped(PodRecord& pod);
  // Its containers must be gone.
  void ErasePod(const PodSandboxId& id);

  // A container that is being created, with the next key; the rest of it is the caller's to fill
  // in: the pod's id, and its own with SetId.
  ContainerRecord& Add(PodRecord& pod, std::string name);
  ContainerRecord* Find(ContainerKey key);
  const ContainerRecord* Find(ContainerKey key) const;
  ContainerRecord* FindById(const ContainerId& id);
  const ContainerRecord* FindById(const ContainerId& id) const;
  // As runtimes take ids, which accept any beginning of one that only one container has: by the
  // whole id, or else by its beginning. nullptr where none or several have it.
  ContainerRecord* Resolve(const ContainerId& id);
  const ContainerRecord* Resolve(const ContainerId& id) const;
  PodRecord* Resolve(const PodSandboxId& id);
  // For a container without one, which takes the value of `id` over. False where another container
  // has that id: nothing is changed then.
  bool SetId(ContainerRecord& record, ContainerId& id);
  // It is an attempt of another name in its pod from now on.
  void Rename(ContainerRecord& record, std::string name);
  void Erase(ContainerKey key);

  // A key that names no container.
  ContainerKey UnusedKey() { return ContainerKey{++last_key_}; }

  // Marks an event about a record, so that an older list of the runtime does not overrule it.
  void Touch(ContainerRecord& record) { record.touched = ++clock_; }
  void Touch(PodRecord& pod) { pod.touched = ++clock_; }
  uint64_t clock() const { return clock_; }
  // Counts an event that makes no earlier list invalid.
  uint64_t Tick() { return ++clock_; }

  using Containers = std::map<ContainerKey, ContainerRecord>;
  // The name of the runtime that makes sandboxes of this handler; empty where there is only one.
  std::string_view RuntimeOf(const Pod& pod) const;

  const Containers& containers() const { return containers_; }
  using Pods = absl::node_hash_map<PodSandboxId, PodRecord, TextHash>;
  const Pods& pods() const { return pods_; }

  // Everything, for introspection.
  const Snapshot& all() const { return all_; }
  // What policies see: containers for which Placeable() holds.
  const Snapshot& placeable() const { return placeable_; }
  // Whether some of the CPUs are exclusive ones of another container than this.
  bool OthersOwn(const CpuSet& cpus, ContainerKey key) const;

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

  // As many containers as a node has: a decision about one looks for all that it moves.
  static constexpr size_t kRecent = 1024;
  static size_t RecentIndex(ContainerKey key) { return static_cast<size_t>(key) % kRecent; }

  const RuntimesConfig runtimes_;
  HeldOverheads overheads_;  // the sum of PodRecord::counted
  Pods pods_;
  Containers containers_;
  std::vector<ContainerRecord*> in_order_;  // the same: a tree is slow to go through
  // By text within the record, which does not change once it is set.
  absl::flat_hash_map<std::string_view, ContainerRecord*, TextHash> by_id_;
  // At RecentIndex, the container that was looked for last of those whose keys belong there: what
  // happens to one asks for it again and again, and a tree is many cache lines.
  std::array<ContainerRecord*, kRecent> recent_{};
  // Looked for last: containers are made pod by pod, and each asks for its own again and again.
  PodRecord* recent_pod_ = nullptr;
  uint64_t last_key_ = 0;
  uint64_t clock_ = 0;
  View all_;
  View placeable_;
};

}  // namespace resmgr
