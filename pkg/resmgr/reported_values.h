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

// The machine's memory, which kubelets report as the node's capacity.
Bytes MemoryCapacity(const Machine& machine);

// The needs of a container that the runtime reports, by an annotation or the values in force. CPU
// values in force have precedence, since after a resize they are newer than the annotation. In a
// Guaranteed pod the quota shows the request, too: it counts if the shares are a policy's, for the
// fraction of a container that also has CPUs of its own.
Requirements ReportedNeeds(const Pod& pod, const RuntimeContainer& reported, Bytes memory_capacity);
// The request of a container with these needs, as far as the values in force that the runtime
// reports show it.
LinuxResources ReportedRequest(const RuntimeContainer& reported, const Requirements& needs);
// Sets needs and request of the container to the CPU values in force, after an update that reached
// the runtime but not the disk. `in_force` are the needs by `reported`.
void TakeCpuInForce(const RuntimeContainer& reported, const Requirements& in_force,
                    Container& container);

// Whether the runtime may report these shares as `reported`: runtimes may convert them to weights
// of cgroup v2 and back.
bool IsSameByWeight(int64_t shares, const std::optional<int64_t>& reported);
// Whether the shares in force, if reported, are those last sent: the saved ones, or those that
// later stages set instead. Runtimes may report shares by way of cgroup v2's coarser weights, and
// from 256 CPUs on all are the same; then the quotas must be equal, too.
bool TellsCpuInForce(const SavedContainer& saved, const LinuxResources& in_force);

// The needs of a container with `needs` after its request changed from `before` to `after`. Only
// needs whose values really change are estimated anew: the others may come from an annotation,
// which is more exact, or be a request of 256 CPUs or more without a quota. Values that come from
// its pod are kept.
Requirements NeedsAfter(Requirements needs, const LinuxResources& before,
                        const LinuxResources& after, QosClass qos, Bytes memory_capacity);

// Puts numbers that later stages set in a request into `later`. `sent`: the changes of all stages;
// `ours`: the values without the later stages. Numbers that the request does not have stay as they
// are.
void TakeSent(const ResourceValues& sent, const ResourceValues& ours, NumbersSetLater& later);

// Returns the report without the shares and the quota if no client, policy or later stage has set
// them. They may then come from an update that failed, since no other update replaces them.
LinuxResources WithoutUnnamed(LinuxResources in_force, const Container& container);

// Takes the runtime's first report since its last update: if a number differs from the sent one,
// the runtime's plugins have set it. `placed` is the placement's part of the sent values.
void TakeFirstReport(const LinuxResources& in_force, const ResourceValues& placed,
                     Container& container);

// Does the same for a container of an earlier daemon, whose saved data may be older than the last
// numbers that it sent. The numbers that the client asked for, and a lifted quota, may be in force
// by a later decision, so they do not count as set by plugins. A limit that the client must have
// asked for, but that was not saved, becomes a part of the container's request.
void TakeFirstReportOfSaved(const LinuxResources& in_force, const ResourceValues& placed,
                            Container& container);

// The conclusion from the numbers in force about a container of an earlier daemon.
enum class NumbersNews {
  kNone,     // the numbers are as saved, or are not reported
  kPlugins,  // the runtime's own plugins have set them: the request is still the saved one
  kAsked,    // the update that was saved as under way has reached the runtime
  kUpdated,  // they come from an update that was not saved: they show the request
};
struct ReportOfSaved {
  const SavedContainer& saved;
  QosClass qos;
  const LinuxResources& in_force;
  const Requirements& needs_in_force;  // needs by the values in force, without numbers set later
  CpuSet crowded;                      // CPUs that several containers are bound to
  bool called = false;                 // an update was under way when the earlier daemon ended
  bool others_set = false;             // stages or plugins have set numbers on this node before
};
NumbersNews JudgeNumbers(const ReportOfSaved& report);
// Whether the CPUs in force show no update since the container was saved. If they do, an update
// gave it CPUs of its own: exactly as many as it needs now.
bool IsPlacedAsSaved(const ReportOfSaved& report);

// The resources in force; numbers of later stages that are still in force are replaced by those of
// the policy or the client.
LinuxResources WithoutSetLater(const SavedContainer& saved, LinuxResources in_force);

// The client's values of those labels and annotations that `sent` changes; of annotations only
// those that policies read.
AskedTexts TextsBefore(const Adjustment& sent, const StringMap& labels,
                       const StringMap& annotations);

}  // namespace resmgr
