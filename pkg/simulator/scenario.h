// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "pkg/base/status.h"
#include "pkg/config/config_node.h"
#include "pkg/model/pod.h"
#include "pkg/policy/container_use.h"
#include "pkg/resmgr/resource_manager.h"
#include "pkg/simulator/kube_objects.h"
#include "pkg/simulator/manifest.h"

namespace resmgr {

// The target "NS/POD[/CONTAINER]".
struct Target {
  std::string namespace_name{};
  std::string pod{};
  std::string container{};  // empty: the whole pod

  std::string PodName() const { return namespace_name + "/" + pod; }
};

struct DeleteStep {
  Target target{};
};

struct ResizeStep {
  Target target{};
  ResourceResize change{};
};

// The daemon ends and starts again.
struct RestartStep {};

// Time passes.
struct WaitStep {
  std::chrono::milliseconds time{};
};

// Another configuration is delivered to the running daemon. It replaces the former one as a whole.
struct ConfigStep {
  ConfigNode config{};
};

// Asks the active policy for better places; `apply`: the containers move there.
struct RebalanceStep {
  bool apply = false;
  bool by_use = false;
  std::optional<int> moves{};  // by use: how many at most
};

// Sets how many CPUs containers want from now on. How many they get depends on their CPUs and on
// the other containers there.
struct UseStep {
  struct Entry {
    Target target{};  // a pod stands for each of its containers
    double wanted = 0;
  };
  std::vector<Entry> entries{};
};

// The use of containers at one moment of a recording.
struct RecordedUse {
  std::chrono::milliseconds at{0};  // since the recording's start
  std::vector<std::pair<ContainerId, policy::ContainerUse>> use{};
};

// A call that the daemon recorded; the fields of other calls stay empty.
struct RecordedStep {
  enum class Call {
    kRunPod,
    kUpdatePod,
    kStopPod,
    kRemovePod,
    kCreate,
    kStart,
    kStop,
    kRemove,
    kUpdate,
  };

  Call call{};
  Pod pod{};                // kRunPod; kUpdatePod its id and resources; for others only the id
  CreateRequest request{};  // kCreate
  ContainerId container{};
  LinuxResources resources{};  // kUpdate
};

struct Step {
  std::string where{};  // "FILE:LINE"
  std::variant<Manifest, ClaimDocument, DeleteStep, ResizeStep, RestartStep, WaitStep, ConfigStep,
               RebalanceStep, UseStep, RecordedStep, RecordedUse>
      action{};
};

using Scenario = std::vector<Step>;

// Reads one file of a scenario: YAML documents, or a recording (pkg/dump/README.md). `source` names
// it. Bounded like ParseYamlDocuments, recordings by kMaxRecordedCalls, pods by kMaxPods, claims by
// kMaxClaims. Kubernetes objects are read as in kube_objects.h; `notes`, which may be nullptr, gets
// a line for each kind that is left out. kInvalidArgument "SOURCE:LINE: ..." for anything that is
// neither such an object nor one of the control documents
//   delete: NS/POD[/CONTAINER]
//   resize: {pod: NS/POD, container: C, resources: {requests: {...}, limits: {...}}}
//   restart: relay
//   wait: DURATION, as "90s" or "1m30s", at most a day
//   config: {...}
//   rebalance: preview|apply
//   rebalance: {by: rules|use, apply: true|false, moves: N}
//   use: {NS/POD[/CONTAINER]: CPUS or {cpus: CPUS, pressure: PERCENT}, ...}
// Claims of a document come before its pods, as a kubelet prepares them first. If `node` is not
// empty, pods and claims of other nodes are left out. Recorded calls that failed are left out: the
// effects of a success are unknown.
StatusOr<Scenario> ReadScenario(std::string_view text, std::string_view source,
                                std::vector<std::string>* notes = nullptr,
                                std::string_view node = {});

// One sentence that names claims which containers carry but the scenario lacks, since these are
// left out. Empty if the scenario has no claims at all.
std::vector<std::string> NotesOnClaims(const Scenario& scenario);

// Limit in bytes of a scenario's file. It is large for recordings, which are longer than files that
// users write.
inline constexpr size_t kMaxScenarioSize = size_t{64} << 20;
inline constexpr size_t kMaxRecordedCalls = 100'000;

// Whether the text begins with the header of a recording.
bool IsRecording(std::string_view text);

}  // namespace resmgr
