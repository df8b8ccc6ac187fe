// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "pkg/config/blockio_config.h"
#include "pkg/config/config_section.h"
#include "pkg/config/cpu_classes_config.h"
#include "pkg/config/memory_classes_config.h"
#include "pkg/config/rdt_config.h"
#include "pkg/config/scheduling_config.h"

namespace resmgr {

// How a container's exclusive CPUs are kept undisturbed (docs/classes.md).
struct IsolationConfig {
  enum class Interrupts { kLeave, kIsolate, kHousekeeping };
  enum class Workqueues { kLeave, kIsolate };
  enum class Quota { kKeep, kLift };
  enum class Partition { kNone, kRoot, kIsolated };

  Interrupts interrupts = Interrupts::kLeave;
  Workqueues workqueues = Workqueues::kLeave;
  Quota quota = Quota::kKeep;              // of the pod
  Partition partition = Partition::kNone;  // of the container's cgroup
  // The text of the kernel's file: microseconds, "0" (any latency) or "n/a" (none); "" leaves the
  // file unchanged.
  std::string max_latency{};
  std::string governor{};  // "" leaves it unchanged

  bool any() const { return *this != IsolationConfig(); }
  friend bool operator==(const IsolationConfig&, const IsolationConfig&) = default;
};

// Configures the classes of containers (pkg/classes), with one member for each kind.
struct ClassesConfig {
  // The treatment of a pod that names a class that does not exist, or that this machine cannot
  // provide.
  enum class Unknown { kRefuse, kIgnore };
  enum class Absent { kWarn, kRefuse };

  IsolationConfig isolation{};
  std::string isolation_source = "classes.isolation";  // the key that sets `isolation`
  // Globs of the interrupts that may be moved.
  std::vector<std::string> controllable = {"*"};
  bool balance = true;         // a running irqbalance gets the CPUs that it must avoid
  std::string balance_file{};  // irqbalance's environment file, from the host's root; "": none
  std::vector<MemoryClassConfig> memory{};
  // Files of cgroups that pods may set by annotations.
  std::vector<std::string> memory_files{};
  RdtConfig rdt{};
  BlockioConfig blockio{};
  CpuClassesConfig cpu{};
  SchedulingConfig scheduling{};
  // Globs of the namespaces whose pods may choose classes by annotations, by kind ("rdt"), or by
  // kind and class ("rdt/gold"), which replaces the globs of the kind for that class.
  std::map<std::string, std::vector<std::string>, std::less<>> namespaces{};
  bool of_pools = false;  // the active policy gives its pools classes
  Unknown unknown = Unknown::kRefuse;
  Absent absent = Absent::kWarn;

  // Whether pods of the namespace may choose a class of this kind. `name` "" stands for a class
  // without a name, or for any.
  bool Allows(std::string_view kind, std::string_view name, std::string_view namespace_name) const;
  // The names of the kind's classes; none for a kind whose classes have no names.
  std::vector<std::string> NamesOf(std::string_view kind) const;
  // Whether containers may have classes at all.
  bool any() const {
    return of_pools || isolation.any() || chooses() || rdt.any() || blockio.any() || cpu.any() ||
           scheduling.any();
  }
  // Whether some pods may choose classes.
  bool chooses() const { return !namespaces.empty(); }
  friend bool operator==(const ClassesConfig&, const ClassesConfig&) = default;
};

// The module `classes`.
void DescribeClasses(ConfigSection& root, ClassesConfig& config);

// Describes the keys of an isolation, in the module and in a pod's annotation.
void DescribeIsolation(ConfigSection& section, IsolationConfig& config);

// Describes the key `Undisturbed` of a policy's section, a map with the keys of an isolation. While
// that policy is active, they override `classes.isolation` (OverrideIsolation).
void DescribeUndisturbed(ConfigSection& section, IsolationConfig& config);
// `section` is the active policy's, at `path`, and has been checked.
void OverrideIsolation(const ConfigNode& section, std::string_view path, ClassesConfig& config);

// Whether a clock governor can have this name.
Status CheckGovernor(std::string_view name);

}  // namespace resmgr
