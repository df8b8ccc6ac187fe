// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "pkg/base/string_map.h"
#include "pkg/classes/class_context.h"
#include "pkg/classes/class_plan.h"
#include "pkg/classes/host_keeper.h"
#include "pkg/config/classes_config.h"
#include "pkg/model/adjustment.h"
#include "pkg/model/container.h"
#include "pkg/model/pod.h"
#include "pkg/policy/policy.h"

namespace resmgr {

class BlockDevices;
class ThreadAttributes;

// A container that is being created, or exists. Its references are valid for one call.
struct ClassedContainer {
  const Pod& pod;
  std::string_view name;
  const StringMap& annotations;  // the container's own annotations
  int64_t memory_limit;          // bytes; 0: none
  const Placement& placement;
  const ClassNames& of_pool;  // Policy::ClassesOf

  static ClassedContainer Of(const Pod& pod, const Container& container,
                             const ClassNames& of_pool) {
    return {.pod = pod,
            .name = container.name,
            .annotations = container.annotations,
            .memory_limit = container.requested.memory_limit.value_or(0),
            .placement = container.placement,
            .of_pool = of_pool};
  }
  ClassQuestion Ask(std::string_view kind, bool by_qos = false) const {
    const auto chosen = of_pool.find(kind);
    return {.pod = pod,
            .container = name,
            .annotations = annotations,
            .pool = placement.pool,
            .class_of_pool =
                chosen == of_pool.end() ? std::string_view() : std::string_view(chosen->second),
            .by_qos = by_qos};
  }
};

// The containers and pools that get classes. Its references are valid for one call.
struct ClassWork {
  const std::vector<ClassSubject>& subjects;
  const std::vector<ClassPool>& pools;
  const ClassesConfig& config;
  HostKeeper& host;
};

// One kind of classes, or several that are chosen together. Each kind has two objects: one for the
// loop's thread, and one for the worker's.
class ClassKind {
 public:
  virtual ~ClassKind() = default;

  // These functions run on the loop. They are pure: equal arguments give equal results.

  // Adds the container's classes. InvalidArgument: the pod asks for a class that does not exist.
  // Then a creation is refused, and an existing container gets the classes that were added: those
  // that it has without the pod's annotations.
  virtual Status Choose(const ClassedContainer& container, const ClassesConfig& config,
                        ChosenClasses& chosen) const = 0;
  // Adds the fields that the runtime itself applies when it creates a container. `unified`: the
  // node has cgroup v2.
  virtual void AtCreation(const ChosenClasses& /*chosen*/, const ClassesConfig& /*config*/,
                          bool /*unified*/, Adjustment& /*adjustment*/) const {}
  // Whether the container's start has to wait until the worker has done its part.
  virtual bool HoldsStart(const ClassSubject& /*subject*/, const ClassesConfig& /*config*/) const {
    return false;
  }

  // These functions run on the worker's thread, and may block.

  // Adds the wanted values of the host's files, and the parts for `explain` and `classes`; only
  // reads. If a plan depends on a file that it also writes, it reads the file's first value
  // (HostKeeper::ReadFirst), so that the same containers give the same values again.
  virtual void Plan(const ClassWork& work, ClassPlan& plan) = 0;
  // Called after the values have been written. Sets everything that is not a value of a file, such
  // as attributes of threads, and stores the outcome in its parts (`possible`, `in_force`). Not
  // called while the journal cannot be written.
  virtual void Apply(const ClassWork& /*work*/, ClassPlan& /*plan*/) {}
};

// Adds the class that ChooseClass chooses, and its note. If ChooseClass refuses, adds the class
// without annotations and returns the error.
Status AddClass(std::string_view kind, const ClassQuestion& about,
                const std::vector<KnownClass>& known, const ClassesConfig& config,
                ChosenClasses& chosen);

// All kinds, in the order in which their values are written.
std::vector<std::unique_ptr<ClassKind>> MakeClassKinds(const ClassContext& context);

// The makers of the kinds, each implemented in a file of its own.

// Keeps disturbances away from the own CPUs of containers (isolation_wish.h, isolation_plan.h).
std::unique_ptr<ClassKind> MakeIsolationKind(const ClassContext& context);

// Classes of memory (memory_wish.h): files of containers' cgroups v2, which the runtime sets at
// creation. Later the worker keeps them: it sets what the runtime could not set, and follows the
// container's memory limit.
std::unique_ptr<ClassKind> MakeMemoryKind(const ClassContext& context);

// Classes of block I/O: limits and weights of disks in the containers' cgroups (blockio_limits.h).
// The runtime sets at creation what it can. The worker sets the rest, before the start if the front
// door can delay starts. The globs of devices are looked up with each plan.
std::unique_ptr<ClassKind> MakeBlockioKind(const ClassContext& context);
// The same kind with other devices, for tests.
std::unique_ptr<ClassKind> MakeBlockioKind(const ClassContext& context,
                                           std::unique_ptr<BlockDevices> devices);

// Classes of scheduling: the scheduler and the I/O priority of a container's threads, and the burst
// of its CPU quota. If the runtime has fields for them, threads begin with the settings that the
// kernel never refuses. The worker sets the rest once, before the start if the front door can delay
// starts; so later changes by the container's own programs stay.
std::unique_ptr<ClassKind> MakeSchedulingKind(const ClassContext& context);
// The same kind with other threads, for tests.
std::unique_ptr<ClassKind> MakeSchedulingKind(const ClassContext& context,
                                              std::unique_ptr<ThreadAttributes> threads);

// Classes of caches and memory bandwidth (resctrl). Each class of the configuration is a group with
// this daemon's prefix. The masks of all classes are written together: all come into force, or
// none. Containers join their groups by their own CPUs, by their tasks or through the runtime.
// Groups of others are listed, and never touched.
std::unique_ptr<ClassKind> MakeRdtKind(const ClassContext& context);

// Monitoring groups of resctrl for pods whose containers have a class of caches and memory
// bandwidth: "GROUP/mon_groups/PREFIX UID" within the group of the class, with the CPUs or the
// tasks of the pod's containers there. Tasks that have a pool's class by its CPUs are in the root
// group, and so is their monitoring group. The configuration may instead ask for one group for each
// container, named by its id. pkg/usage reads their counters. If no monitoring id (RMID) is left,
// the containers run without a group. Comes after RdtKind, which makes the groups of classes.
std::unique_ptr<ClassKind> MakeRdtMonitorKind();

// Classes of CPUs: their clocks, energy preferences and idle states. A CPU follows the class of the
// container that has it for itself, else the class of its pool. In each package, or in the whole
// machine, the classes with the highest priority in use get `turbo`, and the others `base`
// (nri-plugins 0.14). CPUs with a common clock get the highest rate that one of their classes
// wants. Least and highest rates are written in an order in which the least never exceeds the
// highest, and an energy preference while the governor allows it.
std::unique_ptr<ClassKind> MakeCpuKind();

}  // namespace resmgr
