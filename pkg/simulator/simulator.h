// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "pkg/base/status.h"
#include "pkg/config/config.h"
#include "pkg/policy/policy.h"
#include "pkg/simulator/report.h"
#include "pkg/simulator/scenario.h"
#include "pkg/simulator/simulated_node.h"
#include "pkg/topology/machine.h"

namespace resmgr {

// Plays the kubelet of a scenario for a SimulatedNode and reports the effects of each step. A
// refused pod stays refused, although a kubelet would try again later; another document of the same
// pod creates its missing containers. The same scenario always has the same effects.
//
// A pod's init containers run one after the other, each to its end, except sidecars, then its
// containers start; the pod does not go on after a refused init container.
//
// A claim is prepared, as by the node's driver for Dynamic Resource Allocation, at its place in the
// scenario; if CPUs are then not held for it, again when a pod comes that carries it; its CPUs are
// given back when the last pod that carries it is deleted.
class Simulator {
 public:
  struct Options {
    const Machine& machine;  // must outlive the simulator
    // Never returns nullptr, also for the null policy. kInvalidArgument if the configuration does
    // not fit the machine.
    std::function<StatusOr<std::unique_ptr<Policy>>(const Config&)> make_policy;
    Config config{};
    std::function<StatusOr<Config>(const ConfigNode&)> read_config;
    // Returns the classes that a configuration gives containers. No function, or nullptr as its
    // result: there are none.
    std::function<std::shared_ptr<const ClassPreview>(const Config&)> classes{};
    bool explain = false;  // fill in StepEffect::candidates
  };

  static StatusOr<std::unique_ptr<Simulator>> Create(Options options);

  // kInvalidArgument "SOURCE:LINE: ..." for an invalid configuration in the scenario.
  Status Check(const Scenario& scenario) const;

  // Runs the next step and returns its effects in their order; empty for steps without effect on
  // containers.
  std::vector<StepEffect> Run(const Step& step);

  const SimulatedNode& node() const { return *node_; }

 private:
  // One container of a simulated pod.
  struct Member {
    ContainerId id{};
    bool sidecar = false;
  };
  struct RunningPod {
    PodSandboxId id{};
    Manifest manifest{};
    std::map<std::string, Member> members{};
    std::vector<std::string> order{};            // members in the order of their creation
    std::map<std::string, uint32_t> attempts{};  // how often each was created
  };

  struct KnownClaim {
    ClaimDocument document{};
    bool ours = true;  // it has a device of the node's driver, or cannot be read
  };

  struct Before {
    std::string cpus{};
    std::string mems{};
    bool had_own = false;
  };

  explicit Simulator(Options options);

  void Do(const Manifest& manifest);
  void Do(const ClaimDocument& claim);
  void Do(const DeleteStep& step);
  void Do(const ResizeStep& step);
  void Do(const RestartStep& step);
  void Do(const WaitStep& step);
  void Do(const ConfigStep& step);
  void Do(const RebalanceStep& step);
  void Do(const UseStep& step);
  void Do(const RecordedUse& step);
  void Do(const RecordedStep& step);

  // Holds CPUs for the claim if it has devices of this node's driver.
  Status Prepare(KnownClaim& claim);
  // Prepares the claim and adds an effect.
  Status Tell(KnownClaim& claim);
  // Prepares the claims of a pod that are not held; returns the error of the first refused one.
  Status PrepareFor(const Manifest& manifest);
  void Unprepare(const Manifest& ended);
  // The UIDs of the container's claims that are for this node's driver.
  std::vector<std::string> CarriedBy(const Manifest::Container& container) const;
  // `reason` is the effect's reason if the claim holds nothing.
  void AddClaim(std::string op, const dra::ClaimName& claim, const Status& status,
                std::string reason);

  // Launches the missing containers of the manifest, in a kubelet's order.
  void LaunchMissing(RunningPod& pod);
  // Returns false if the container was refused.
  bool Launch(RunningPod& pod, const Manifest::Container& container);
  void DoByUse(const RebalanceStep& step);
  // Adds the moves of a preview to the last effect.
  void TellPreview(const std::vector<ResourceManager::Move>& moves);
  // Lets time pass. An effect reports the containers that moved meanwhile; with `always` there is
  // one in any case.
  void Wait(const std::string& op, std::chrono::milliseconds time, bool always);
  void Replay(const RecordedStep& step, const RunningContainer& container);
  // Sets the classes of the configuration in force.
  void SetClasses();
  void DeleteContainer(RunningPod& pod, const std::string& name);
  Pod SandboxOf(const Manifest& manifest);
  LinuxResources ResourcesOf(const Manifest& manifest, const Requirements& requirements,
                             bool sidecar) const;
  // The manifest after the resize, or an API server's refusal.
  StatusOr<Manifest> Resized(const RunningPod& pod, const ResizeStep& step) const;

  // Adds an effect: the changes since the former one, and the container's present place.
  void Add(std::string op, std::string pod, std::string container, const ContainerId& id,
           const Status& status);

  const Options options_;
  Config config_;
  Bytes memory_capacity_;
  std::unique_ptr<SimulatedNode> node_;
  std::map<std::string, RunningPod> pods_;    // by "namespace/name"
  std::map<std::string, KnownClaim> claims_;  // by "namespace/name"
  std::map<ContainerId, Before> before_;      // containers as at the last effect
  std::vector<StepEffect> effects_;           // effects of this step
  size_t step_ = 0;
  uint64_t last_id_ = 0;
  std::chrono::milliseconds recorded_at_{0};  // the time of a recording
};

}  // namespace resmgr
