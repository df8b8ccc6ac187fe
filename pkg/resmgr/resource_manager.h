// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "pkg/base/status.h"
#include "pkg/model/adjustment.h"
#include "pkg/model/container.h"
#include "pkg/model/pod.h"
#include "pkg/policy/policy.h"
#include "pkg/resmgr/runtime_client.h"
#include "pkg/sys/event_loop.h"
#include "pkg/topology/machine.h"

namespace resmgr {

// What a CreateContainer request says.
struct CreateRequest {
  PodSandboxId pod_id;
  std::optional<Pod> pod;  // from sandbox_config, used when the sandbox is not known here
  std::string name;
  uint32_t attempt = 0;
  StringMap labels;
  StringMap annotations;
  bool has_linux = false;  // the request carries linux resources or at least a linux section
  LinuxResources resources;
  std::vector<LocalityHint> hints{};  // when the policy wants them
};

// A decided but not yet executed change. Ends with exactly one of the matching Succeeded or Failed
// calls.
struct Admission {
  ContainerKey key{};
  Adjustment adjustment{};
  uint64_t ticket = 0;  // tells updates of one container apart; the brain's own
};

// The brain: holds pods and containers, asks the policy, keeps what the runtime was told apart from
// what it should be, and closes the gap. All on the loop's thread.
//
// Life of a container: AdmitCreate (placed, others planned to shrink) -> CreateSucceeded (id known)
// -> AdmitStart (waits until no running container is on its exclusive CPUs) -> StartSucceeded ->
// ContainerStopped -> ContainerRemoved. A container that loses CPUs is updated at the runtime in
// parallel with the creation that took them.
class ResourceManager {
 public:
  struct Options {
    // How long a start waits for others to leave its CPUs before it is refused.
    std::chrono::milliseconds start_timeout{10'000};
    // Waits between tries of an update that failed: doubles from the first to the last.
    std::chrono::milliseconds first_retry{50};
    std::chrono::milliseconds last_retry{5'000};
  };

  ResourceManager(EventLoop& loop, const Machine& machine, std::unique_ptr<Policy> policy,
                  RuntimeClient& runtime, Options options);
  ~ResourceManager();
  ResourceManager(const ResourceManager&) = delete;
  ResourceManager& operator=(const ResourceManager&) = delete;

  // A connection to the runtime stands: lists what exists, adopts it where it runs, places only
  // what has no legal placement, pushes only real differences. Tried again with back-off until it
  // succeeds or the connection is lost.
  void RuntimeConnected();
  void RuntimeDisconnected();
  // Something happened whose outcome only the runtime knows: lists again, soon, without holding
  // calls up.
  void Resync();
  // Runs `ready` once the first synchronization after a connect is done; at once when it is. With
  // Unavailable when the runtime is not connected, when the connection is lost meanwhile, or when
  // the synchronization fails (the next one follows by itself).
  void WhenReady(std::function<void(Status)> ready);

  // After the runtime's success.
  void PodCreated(Pod pod);
  void PodStopped(const PodSandboxId& id);
  void PodRemoved(const PodSandboxId& id);

  // Places the container of a known sandbox, or of the one that the request describes; the policy's
  // refusal names container, need and shortage, and changes nothing. With an empty adjustment:
  //   - a container without Linux resources: kept here, but never placed or updated;
  //   - an unknown sandbox that the request does not describe either: not kept; when the runtime
  //     creates it all the same, everything is listed again and it is adopted then.
  // A former attempt of the container in the same sandbox is dead: its CPUs pass on, and come back
  // to it if this creation fails.
  StatusOr<Admission> AdmitCreate(const CreateRequest& request);
  void CreateSucceeded(ContainerKey key, const ContainerId& id);
  void CreateFailed(ContainerKey key);

  // Runs `go` when the container may start: at once, with nullptr returned, when nobody is in its
  // way or it is not known here. Else a refusal is FailedPrecondition naming the container in the
  // way after Options::start_timeout, or Unavailable when the connection is lost. Destroying the
  // returned token withdraws the wait (the client went away).
  class StartWait {
   public:
    virtual ~StartWait() = default;
  };
  std::unique_ptr<StartWait> AdmitStart(const ContainerId& id, std::function<void(Status)> go);
  void StartSucceeded(const ContainerId& id);
  void StartFailed(const ContainerId& id);

  // Merges the update into what the container requests and lets the policy decide again. The
  // adjustment carries its cpuset, whatever the request says; CPUs that another container has to
  // leave first follow in an update of our own. A refusal changes nothing. An empty adjustment for
  // a container that is not known here.
  StatusOr<Admission> AdmitUpdate(const ContainerId& id, const LinuxResources& requested);
  void UpdateSucceeded(const Admission& admission);
  void UpdateFailed(const Admission& admission);

  void ContainerStopped(const ContainerId& id);
  void ContainerRemoved(const ContainerId& id);

  // For introspection; valid until the next call of anything else here.
  const Snapshot& snapshot() const;
  const Policy& policy() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace resmgr
