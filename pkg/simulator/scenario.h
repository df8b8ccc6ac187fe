// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "pkg/base/status.h"
#include "pkg/config/config_node.h"
#include "pkg/model/pod.h"
#include "pkg/resmgr/resource_manager.h"
#include "pkg/simulator/manifest.h"

namespace resmgr {

// "NS/POD[/CONTAINER]".
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

// Another configuration is delivered to the running daemon. It replaces the one before as a whole.
struct ConfigStep {
  ConfigNode config{};
};

// The active policy is asked for better places; `apply`: the containers move there.
struct RebalanceStep {
  bool apply = false;
};

// A call that the daemon recorded, with what it had of these.
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
  Pod pod{};                // kRunPod; kUpdatePod its id and resources; of the others only the id
  CreateRequest request{};  // kCreate
  ContainerId container{};
  LinuxResources resources{};  // kUpdate
};

struct Step {
  std::string where{};  // "FILE:LINE"
  std::variant<Manifest, DeleteStep, ResizeStep, RestartStep, WaitStep, ConfigStep, RebalanceStep,
               RecordedStep>
      action{};
};

using Scenario = std::vector<Step>;

// Reads one file of a scenario: YAML documents, or a recording (pkg/dump/README.md). `source` names
// it. Bounded as ParseYamlDocuments is, recordings by kMaxRecordedCalls, pods by kMaxPods. Objects
// of Kubernetes are read as kube_objects.h says; `notes`, which may be nullptr, gets a line for
// what of them is left out. InvalidArgument "SOURCE:LINE: ..." for anything that is neither such an
// object nor one of the control documents
//   delete: NS/POD[/CONTAINER]
//   resize: {pod: NS/POD, container: C, resources: {requests: {...}, limits: {...}}}
//   restart: relay
//   wait: DURATION, as "90s" or "1m30s", at most a day
//   config: {...}
//   rebalance: preview|apply
// Recorded calls that failed are left out: what would have followed their success is unknown.
StatusOr<Scenario> ReadScenario(std::string_view text, std::string_view source,
                                std::vector<std::string>* notes = nullptr);

// What a file of a scenario may have, in bytes: a recording is longer than what people write.
inline constexpr size_t kMaxScenarioSize = size_t{64} << 20;
inline constexpr size_t kMaxRecordedCalls = 100'000;

}  // namespace resmgr
