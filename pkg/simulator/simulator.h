// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "pkg/base/status.h"
#include "pkg/config/config.h"
#include "pkg/policy/policy.h"
#include "pkg/simulator/scenario.h"
#include "pkg/simulator/simulated_node.h"
#include "pkg/simulator/step_effect.h"
#include "pkg/topology/machine.h"

namespace resmgr {

// Plays the kubelet of a scenario for a SimulatedNode and tells what came of each step. What a
// policy refuses stays refused: a kubelet would try it again later, a scenario says so by another
// document of the pod, which creates what is missing of it. The same scenario has the same effects
// each time.
//
// A pod's init containers run one after the other, each to its end, sidecars excepted, then its
// containers start; an init container that is refused keeps the pod from going on.
class Simulator {
 public:
  struct Options {
    const Machine& machine;  // must outlive the simulator
    // Never nullptr, for the null policy neither. InvalidArgument when the configuration does not
    // fit the machine.
    std::function<StatusOr<std::unique_ptr<Policy>>(const Config&)> make_policy;
    Config config{};
    std::function<StatusOr<Config>(const ConfigNode&)> read_config;
    bool explain = false;  // fill in StepEffect::candidates
  };

  static StatusOr<std::unique_ptr<Simulator>> Create(Options options);

  // InvalidArgument "SOURCE:LINE: ..." when a configuration of the scenario cannot be read.
  Status Check(const Scenario& scenario) const;

  // What the next step did, in the order in which it happened; nothing for steps that have no
  // effect on containers.
  std::vector<StepEffect> Run(const Step& step);

  const SimulatedNode& node() const { return *node_; }

 private:
  // One container of a pod that runs here.
  struct Member {
    ContainerId id{};
    bool sidecar = false;
  };
  struct RunningPod {
    PodSandboxId id{};
    Manifest manifest{};
    std::map<std::string, Member> members{};
    std::vector<std::string> order{};            // of the members' creation
    std::map<std::string, uint32_t> attempts{};  // how often each was created
  };

  struct Before {
    std::string cpus{};
    std::string mems{};
    bool had_own = false;
  };

  explicit Simulator(Options options);

  void Do(const Manifest& manifest);
  void Do(const DeleteStep& step);
  void Do(const ResizeStep& step);
  void Do(const RestartStep& step);
  void Do(const WaitStep& step);
  void Do(const ConfigStep& step);
  void Do(const RebalanceStep& step);
  void Do(const RecordedStep& step);

  // Those of the manifest that do not exist, in the order of a kubelet.
  void LaunchMissing(RunningPod& pod);
  // False when it was refused.
  bool Launch(RunningPod& pod, const Manifest::Container& container);
  void Replay(const RecordedStep& step, const RunningContainer& container);
  void DeleteContainer(RunningPod& pod, const std::string& name);
  Pod SandboxOf(const Manifest& manifest);
  LinuxResources ResourcesOf(const Manifest& manifest, const Requirements& requirements,
                             bool sidecar) const;
  // The manifest as it is after the resize; the refusal of an API server.
  StatusOr<Manifest> Resized(const RunningPod& pod, const ResizeStep& step) const;

  // Adds an effect: what changed since the one before, with where the container is now.
  void Add(std::string op, std::string pod, std::string container, const ContainerId& id,
           const Status& status);

  const Options options_;
  Config config_;
  Bytes memory_capacity_;
  std::unique_ptr<SimulatedNode> node_;
  std::map<std::string, RunningPod> pods_;  // by "namespace/name"
  std::map<ContainerId, Before> before_;    // what runs, as it was at the last effect
  std::vector<StepEffect> effects_;         // of this step
  size_t step_ = 0;
  uint64_t last_id_ = 0;
};

}  // namespace resmgr
