// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "pkg/base/string_map.h"
#include "pkg/kube/qos.h"
#include "pkg/model/adjustment.h"
#include "pkg/model/container.h"
#include "pkg/model/resource_values.h"
#include "pkg/model/resources.h"
#include "pkg/state/saved_container.h"
#include "pkg/topology/cpu_set.h"

namespace resmgr {

// Puts the numbers that later stages made of a request into `later`. `sent`: what all stages
// changed of it; `ours`: what it had carried without the later ones. A number that it does not
// carry stays as it is.
void TakeSent(const ResourceValues& sent, const ResourceValues& ours, NumbersSetLater& later);

// The runtime's first report since it was last told something: what differs from what was sent, its
// own plugins have changed. `placed`: of what was sent.
void TakeFirstReport(const LinuxResources& in_force, const ResourceValues& placed,
                     Container& container);

// What the numbers in force say about a container of an earlier daemon.
enum class NumbersNews {
  kNone,     // they are as saved
  kPlugins,  // the runtime's own plugins have set them: what the container asks for is as saved
  kAsked,    // the update that was saved as under way has arrived
  kUpdated,  // an update that is not on the disk: it is in force what is asked for
};
struct ReportOfSaved {
  const SavedContainer& saved;
  QosClass qos;
  const LinuxResources& in_force;
  const Requirements& needs_in_force;  // what these tell, but for what was set later
  CpuSet crowded;                      // CPUs that several containers are bound to
  bool called = false;                 // an update was under way
};
NumbersNews JudgeNumbers(const ReportOfSaved& report);
// No update has changed the container's place since it was saved: one that has was given CPUs for
// itself alone, and the container is on as many as it needs now.
bool IsPlacedAsSaved(const ReportOfSaved& report);

// What is in force, but for numbers that were set later and are in force still: these are as the
// policy and the client have them.
LinuxResources WithoutSetLater(const SavedContainer& saved, LinuxResources in_force);

// What the client named and `sent` changes: the labels, and the annotations that policies read.
AskedTexts TextsBefore(const Adjustment& sent, const StringMap& labels,
                       const StringMap& annotations);

}  // namespace resmgr
