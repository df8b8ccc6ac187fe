// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "pkg/classes/rdt_groups.h"
#include "pkg/classes/resolved_blockio.h"

namespace resmgr {

class Machine;

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
