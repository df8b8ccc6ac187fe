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

// Puts the numbers that later stages set in a request into `later`. `sent`: the changes of all
// stages; `ours`: the values without the later stages. A number that the request does not carry
// stays as it is.
void TakeSent(const ResourceValues& sent, const ResourceValues& ours, NumbersSetLater& later);

// Returns the report without the shares and the quota that no client, policy or later stage has
// named. After an update that failed, these may be that update's: no other update replaces them.
LinuxResources WithoutUnnamed(LinuxResources in_force, const Container& container);

// Takes the runtime's first report since its last update: numbers that differ from the sent ones
// were changed by its own plugins. `placed` is the placement's part of the sent values.
void TakeFirstReport(const LinuxResources& in_force, const ResourceValues& placed,
                     Container& container);

// Likewise for a container of an earlier daemon, whose notes may be older than the last numbers
// that it sent. The numbers that the client asked for, and a quota that is lifted, may be in force
// by a later decision, so they do not count as changes by plugins. A limit that the client must
// have asked for, and that is not noted, becomes a part of its request.
void TakeFirstReportOfSaved(const LinuxResources& in_force, const ResourceValues& placed,
                            Container& container);

// The conclusion that the numbers in force allow about a container of an earlier daemon.
enum class NumbersNews {
  kNone,     // they are as saved
  kPlugins,  // the runtime's own plugins have set them: the container's request is as saved
  kAsked,    // the update that was saved as under way has arrived
  kUpdated,  // an update that is not on the disk: the request is in force
};
struct ReportOfSaved {
  const SavedContainer& saved;
  QosClass qos;
  const LinuxResources& in_force;
  const Requirements& needs_in_force;  // needs by the values in force, without numbers set later
  CpuSet crowded;                      // CPUs that several containers are bound to
  bool called = false;                 // an update was under way
  bool others_set = false;             // stages or plugins have set numbers on this node before
};
NumbersNews JudgeNumbers(const ReportOfSaved& report);
// Whether no update has changed the container's place since it was saved. An update that has
// changed it gave the container CPUs of its own, as many as the container needs now.
bool IsPlacedAsSaved(const ReportOfSaved& report);

// The resources in force, without the numbers that were set later and are still in force: in their
// place are the numbers of the policy and the client.
LinuxResources WithoutSetLater(const SavedContainer& saved, LinuxResources in_force);

// The client's values of the labels and annotations that `sent` changes; only annotations that
// policies read are included.
AskedTexts TextsBefore(const Adjustment& sent, const StringMap& labels,
                       const StringMap& annotations);

}  // namespace resmgr
