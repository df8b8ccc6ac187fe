// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pkg/classes/blockio_limits.h"

namespace resmgr {

class Machine;

// The resctrl groups that the worker found last, for use by the loop: a runtime refuses to create a
// container in a group that does not exist. In the other direction, the loop reports to the worker
// whether the runtime starts containers in groups. Thread-safe.
class RdtGroups {
 public:
  using Names = std::set<std::string, std::less<>>;

  void Set(Names names) {
    const std::lock_guard lock(mutex_);
    names_ = std::move(names);
  }
  bool Has(std::string_view name) const {
    const std::lock_guard lock(mutex_);
    return names_.contains(name);
  }
  void SetStartedIn(bool started_in) { started_in_ = started_in; }
  bool started_in() const { return started_in_; }

 private:
  mutable std::mutex mutex_;
  Names names_;
  std::atomic<bool> started_in_ = false;
};

// The cgroup v2 files of each block I/O class, from the worker's last search for devices. The loop
// reads them here, since a search may block. Only files that containers of this node have.
// Thread-safe.
class ResolvedBlockio {
 public:
  using Classes = std::map<std::string, std::vector<BlockioFile>, std::less<>>;

  void Set(Classes classes) {
    const std::lock_guard lock(mutex_);
    classes_ = std::move(classes);
  }
  // The class's files; empty if the class is not known yet or sets nothing.
  std::vector<BlockioFile> Find(std::string_view name) const {
    const std::lock_guard lock(mutex_);
    const auto found = classes_.find(name);
    return found == classes_.end() ? std::vector<BlockioFile>() : found->second;
  }

 private:
  mutable std::mutex mutex_;
  Classes classes_;
};

// The settings that the front door and its runtime can apply at the creation of a container.
struct CreationWays {
  bool docker = false;  // takes fields of HostConfig instead of files of cgroups
  // A start can be delayed while the container's cgroup exists already.
  bool holds_starts = false;
  // The runtime has fields for these settings (pkg/base/process_settings.h).
  bool io_priority = false;
  bool scheduler = false;
  bool memory_policy = false;
  // The runtime can start a container in a resctrl group without being configured for it.
  bool rdt_groups = false;

  friend bool operator==(const CreationWays&, const CreationWays&) = default;
};

// The surroundings of the kinds of classes, shared by the objects of the loop and of the worker.
struct ClassContext {
  std::string host_root = "/";
  std::string directory{};               // of the journal, for the worker; "": nothing is kept
  std::function<CreationWays()> door{};  // on the loop's thread; nullptr: the door has none
  std::shared_ptr<ResolvedBlockio> blockio = std::make_shared<ResolvedBlockio>();
  std::shared_ptr<RdtGroups> rdt = std::make_shared<RdtGroups>();
  // True once the loop has seen that the kubelet itself sets memory.high or memory.min of
  // containers.
  std::shared_ptr<std::atomic<bool>> kubelet_sets_memory =
      std::make_shared<std::atomic<bool>>(false);
  const Machine* machine = nullptr;  // for memory policies; nullptr: there are no memory policies

  CreationWays ways() const { return door ? door() : CreationWays(); }
};

// The cgroup of the container with this whole id, as a path of HostFiles; empty if there is none.
// `controller` names a hierarchy of cgroup v1; "": cgroup v2. May block.
std::string FindSubjectCgroup(std::string_view host_root, std::string_view controller,
                              const std::string& cgroup_parent, const std::string& id);

}  // namespace resmgr
