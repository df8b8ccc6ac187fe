// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <absl/container/flat_hash_map.h>
#include <absl/container/flat_hash_set.h>

#include "pkg/base/ids.h"
#include "pkg/resmgr/runtime_client.h"
#include "pkg/state/file_system.h"
#include "pkg/sys/event_loop.h"

namespace resmgr {

// A container runtime in memory: holds pods and containers, and carries out every update at once.
// The time of an operation does not grow with their number. Loop's thread only.
class MemoryRuntime : public RuntimeClient {
 public:
  // By the number of their creation.
  using Containers = std::map<uint64_t, RuntimeContainer>;

  // The loop must outlive this object.
  explicit MemoryRuntime(EventLoop& loop) : loop_(loop) {}

  void UpdateContainer(const ContainerId& id, const ResourceValues& adjustment,
                       std::function<void(Status)> done) override;
  void ListAll(Known known, std::function<void(StatusOr<RuntimeInventory>)> done) override;

  // Whether answers are still pending.
  bool busy() const { return answers_ > 0; }

  const Containers& containers() const { return containers_; }
  const Pod* FindPod(const PodSandboxId& id) const;
  const RuntimeContainer* Find(const ContainerId& id) const;
  // In the order of their creation.
  std::vector<ContainerId> ContainersOf(const PodSandboxId& id) const;

  void AddPod(Pod pod);
  void RemovePod(const PodSandboxId& id);
  void Add(RuntimeContainer container);
  void Remove(const ContainerId& id);
  void SetRunning(const ContainerId& id, std::chrono::system_clock::time_point now);
  void SetExited(const ContainerId& id);
  // Puts the values of an accepted request in force.
  void Apply(const ContainerId& id, const LinuxResources& resources);
  void Apply(const ContainerId& id, const ResourceValues& adjustment);

  // Notes another change of this container.
  void Touch(const ContainerId& id) { touched_.insert(id); }
  // Containers that have changed since the last call: first the removed ones, then the others in
  // the order of their creation.
  std::vector<ContainerId> TakeTouched();

 private:
  RuntimeContainer* Change(const ContainerId& id);
  // Runs the function on the loop, after the present call has returned.
  void Answer(std::function<void()> answer);

  EventLoop& loop_;
  uint64_t last_number_ = 0;
  std::map<uint64_t, Pod> pods_;  // by the number of their creation
  Containers containers_;
  absl::flat_hash_map<PodSandboxId, uint64_t, TextHash> pod_numbers_;
  absl::flat_hash_map<ContainerId, uint64_t, TextHash> numbers_;
  absl::flat_hash_map<PodSandboxId, std::set<uint64_t>, TextHash> of_pods_;
  absl::flat_hash_set<ContainerId, TextHash> touched_;
  size_t answers_ = 0;
};

// Files that live as long as this object: the daemon's saved state across simulated restarts.
// Thread-safe.
class MemoryFileSystem : public FileSystem {
 public:
  StatusOr<std::string> Read(const std::string& path, size_t limit) override;
  StatusOr<std::unique_ptr<File>> Create(const std::string& path) override;
  Status Rename(const std::string& from, const std::string& to) override;
  Status Remove(const std::string& path) override;
  Status SyncDirectory(const std::string& directory) override;
  Status MakeDirectory(const std::string& directory) override;

 private:
  class OpenFile;

  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<std::string>> files_;
};

}  // namespace resmgr
