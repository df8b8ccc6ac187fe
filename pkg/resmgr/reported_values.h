// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "pkg/base/string_map.h"
#include "pkg/base/units.h"
#include "pkg/kube/qos.h"
#include "pkg/model/adjustment.h"
#include "pkg/model/container.h"
#include "pkg/model/pod.h"
#include "pkg/model/resources.h"
#include "pkg/resmgr/runtime_client.h"
#include "pkg/state/saved_container.h"
#include "pkg/topology/cpu_set.h"
#include "pkg/topology/machine.h"

namespace resmgr {

// The machine's memory, which kubelets take as the node's capacity.
Bytes MemoryCapacity(const Machine& machine);

// Needs of a container that the runtime reports, by an annotation or the values in force. Reported
// CPU values in force count, since after a resize they are newer than the annotation. In a
// Guaranteed pod the quota also shows the request, and counts where the shares are a policy's, for
// the part of a container beside CPUs of its own.
Requirements ReportedNeeds(const Pod& pod, const RuntimeContainer& reported, Bytes memory_capacity);
// The request of a container with these needs, of which the runtime reports the values in force.
LinuxResources ReportedRequest(const RuntimeContainer& reported, const Requirements& needs);
// Sets needs and request of the container to the CPU in force, after an update that reached the
// runtime but not the disk. `in_force` are the needs by `reported`.
void TakeCpuInForce(const RuntimeContainer& reported, const Requirements& in_force,
                    Container& container);

// Whether `reported` may stand for these shares: runtimes may convert shares to weights of cgroup
// v2 and back.
bool IsSameByWeight(int64_t shares, const std::optional<int64_t>& reported);
// Whether the shares in force, if they are reported, are the saved ones, with the values that later
// stages set in their place. Runtimes may report shares by way of cgroup v2's coarser weights, and
// from 256 CPUs on all are the same; then the quota has to be the same, too.
bool TellsCpuInForce(const SavedContainer& saved, const LinuxResources& in_force);

// The needs of a container that has needed `needs` when its request changes from `before` to
// `after`. Only what really changes is estimated anew: the rest may come from an annotation, which
// is more exact, as may a request of 256 CPUs or more without a quota. Values that come from its
// pod are kept.
Requirements NeedsAfter(Requirements needs, const LinuxResources& before,
                        const LinuxResources& after, QosClass qos, Bytes memory_capacity);

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

// Does the same for a container of an earlier daemon, whose notes may be older than the last
// numbers that it sent. The numbers that the client asked for, and a quota that is lifted, may be
// in force by a later decision, so they do not count as changes by plugins. A limit that the client
// must have asked for, and that is not noted, becomes a part of its request.
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
