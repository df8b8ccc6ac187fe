// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pkg/classes/blockio_limits.h"

namespace resmgr {

class Machine;

// The groups of resctrl that the worker found last, for the loop: a runtime refuses to create a
// container in a group that does not exist. In return the worker learns from the loop whether the
// runtime starts containers in groups. Thread-safe.
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

// The files of cgroup v2 for each class of block I/O, by the worker's last search for devices. The
// loop reads them, since it must not search itself. Only files that containers of this node have.
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

// The abilities of the front door and its runtime at the creation of a container.
struct CreationWays {
  bool docker = false;  // it has fields of HostConfig in place of files of cgroups
  // A start can wait, and the container's cgroup is there meanwhile.
  bool holds_starts = false;
  // The runtime has fields for these settings (pkg/base/process_settings.h).
  bool io_priority = false;
  bool scheduler = false;
  bool memory_policy = false;
  // The runtime starts a container in a group of resctrl, without a configuration of its own.
  bool rdt_groups = false;

  friend bool operator==(const CreationWays&, const CreationWays&) = default;
};

// The surroundings of the kinds of classes. The objects of the loop and of the worker share it.
struct ClassContext {
  std::string host_root = "/";
  std::string directory{};               // of the journal, for the worker; "": nothing is kept
  std::function<CreationWays()> door{};  // on the loop's thread; nullptr: the door has none
  std::shared_ptr<ResolvedBlockio> blockio = std::make_shared<ResolvedBlockio>();
  std::shared_ptr<RdtGroups> rdt = std::make_shared<RdtGroups>();
  // The kubelet sets memory.high or memory.min of containers itself; the loop has seen it.
  std::shared_ptr<std::atomic<bool>> kubelet_sets_memory =
      std::make_shared<std::atomic<bool>>(false);
  const Machine* machine = nullptr;  // for memory policies; nullptr: there are none

  CreationWays ways() const { return door ? door() : CreationWays(); }
};

// The cgroup of the container with this whole id, as a path of HostFiles; empty if there is none.
// `controller`: that of a hierarchy of cgroup v1; "": cgroup v2. May block.
std::string FindSubjectCgroup(std::string_view host_root, std::string_view controller,
                              const std::string& cgroup_parent, const std::string& id);

}  // namespace resmgr
