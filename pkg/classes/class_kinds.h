// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "pkg/classes/class_context.h"
#include "pkg/classes/class_kind.h"

namespace resmgr {

class BlockDevices;
class ThreadAttributes;

// The makers of the kinds; each kind lies in a file of its own.

// Keeps disturbances away from the own CPUs of containers (isolation_wish.h, isolation_plan.h).
std::unique_ptr<ClassKind> MakeIsolationKind(const ClassContext& context);

// Classes of memory (memory_wish.h): files of containers' cgroups v2, which the runtime sets at
// creation. The worker keeps them: it sets what the runtime could not, and follows the container's
// memory limit.
std::unique_ptr<ClassKind> MakeMemoryKind(const ClassContext& context);

// Classes of block I/O: limits and weights of disks in the containers' cgroups (blockio_limits.h).
// The runtime sets at creation what it can, and the worker the rest, before the start where the
// front door can wait. The globs of devices are looked up with each plan.
std::unique_ptr<ClassKind> MakeBlockioKind(const ClassContext& context);
// The same kind with other devices, for tests.
std::unique_ptr<ClassKind> MakeBlockioKind(const ClassContext& context,
                                           std::unique_ptr<BlockDevices> devices);

// Classes of scheduling: the scheduler and the I/O priority of a container's threads, and the burst
// of its CPU quota. Where the runtime has fields, the threads begin with what the kernel never
// refuses. The worker sets the rest once, before the start where the front door can wait: later
// changes by the container's own programs stay.
std::unique_ptr<ClassKind> MakeSchedulingKind(const ClassContext& context);
// The same kind with other threads, for tests.
std::unique_ptr<ClassKind> MakeSchedulingKind(const ClassContext& context,
                                              std::unique_ptr<ThreadAttributes> threads);

// Classes of caches and memory bandwidth (resctrl). Each class of the configuration is a group with
// our prefix, whose masks are values of one set: all are in force, or none. Containers come into
// their groups by their own CPUs, by their tasks or by the runtime. Groups of others are listed,
// and never touched.
std::unique_ptr<ClassKind> MakeRdtKind(const ClassContext& context);

// Monitoring groups of resctrl for pods whose containers have a class of caches and memory
// bandwidth: "GROUP/mon_groups/PREFIX UID" within the group of the class, with the CPUs or the
// tasks of the pod's containers there; or, as the configuration says, one for each container, by
// its id. pkg/usage reads what they count. Without an id that is left (RMID) there is none, and the
// containers run. After RdtKind, which makes the groups.
std::unique_ptr<ClassKind> MakeRdtMonitorKind();

// Classes of CPUs (docs/classes.md): "cpu".
std::unique_ptr<ClassKind> MakeCpuKind();

}  // namespace resmgr
