// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "pkg/base/status.h"
#include "pkg/classes/class_kind.h"
#include "pkg/classes/class_plan.h"
#include "pkg/classes/host_keeper.h"
#include "pkg/classes/rdt_masks.h"

namespace resmgr {

// Paths of HostFiles; a group is a directory in the first one, which itself is the group "".
inline constexpr const char* kResctrlRoot = "sys/fs/resctrl";

std::string RdtGroupPath(std::string_view group);
std::string RdtGroupFile(std::string_view group, std::string_view file);

// The resctrl features of the machine, and the existing groups.
struct RdtHost {
  RdtMachine machine{};
  uint32_t most_groups = 0;           // the root included
  std::vector<std::string> groups{};  // names, sorted; without the root
};

// Reads /sys/fs/resctrl. NotFound: it is not mounted, or the machine has none. May block.
StatusOr<RdtHost> ReadRdt(HostKeeper& host);

inline constexpr std::string_view kRdt = "rdt";

// The way in which a container joins its group (ClassPart::way).
inline constexpr std::string_view kRdtByCpu = "by CPU";
inline constexpr std::string_view kRdtByTasks = "by tasks";
inline constexpr std::string_view kRdtByRuntime = "by the runtime";
inline constexpr std::string_view kRdtByStart = "started in its group";

// The directory of a class in resctrl; "" for the root.
std::string RdtGroupOf(std::string_view class_name, const RdtConfig& config);
// The directories of all configured classes, without the root.
std::set<std::string> RdtGroupsOf(const RdtConfig& config);

// Whether the container's CPUs get the class: classes are assigned by CPUs, and the container has
// only CPUs of its own.
bool HasOwnRdtCpus(const ClassSubject& subject, const RdtConfig& config);
// Whether the container's pool has its class, so that the pool's CPUs have it already.
bool HasRdtOfPool(const ClassSubject& subject, const ClassWork& work);

// Adds the groups with their masks and CPUs, and the parts. Values that shrink come before those
// that grow. May block.
void PlanRdt(const ClassWork& work, ClassPlan& plan);

}  // namespace resmgr
