// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "pkg/base/status.h"
#include "pkg/model/container.h"
#include "pkg/model/pod.h"
#include "pkg/model/resources.h"

namespace resmgr {

// The runtime's report about one container that exists.
struct RuntimeContainer {
  ContainerId id;
  PodSandboxId pod_id;
  std::string name;
  uint32_t attempt = 0;
  ContainerState state = ContainerState::kCreated;
  std::optional<std::chrono::system_clock::time_point> started_at{};  // if the runtime reports it
  StringMap labels;
  StringMap annotations;
  // True: the runtime reported the resources. False: they are the values last sent to the runtime,
  // which cannot be asked for them by this protocol.
  bool told = true;
  LinuxResources resources;  // in force: from ContainerStatus.resources or the verbose info
  // The container has exited, and the runtime neither starts nor updates it any more.
  bool dead = false;
  // The runtime did not report the container; it is in an earlier daemon's saved data.
  bool kept = false;
};

// Everything that the runtime holds at one moment, as far as it could be asked.
struct RuntimeInventory {
  std::vector<Pod> pods;
  std::vector<RuntimeContainer> containers;
  std::set<PodSandboxId> stopped_pods{};  // those of `pods` that are not ready
  // Objects that are only known from a list, since the runtime failed to report their status, for
  // example of a pod whose shim hangs. Objects of a runtime that could not be asked are not listed
  // at all: earlier knowledge about them stays valid.
  struct Unclear {
    std::set<PodSandboxId> pods;
    std::set<ContainerId> containers;
    Status why;  // the first failure; OK if there was none
    // With several runtimes: the names in the configuration of those that could not be asked.
    std::set<std::string> runtimes{};
  };
  Unclear unclear;
  // Objects whose status was not asked for, since it was known already (Known).
  struct Brief {
    std::set<PodSandboxId> pods;
    std::set<ContainerId> containers;
  };
  Brief brief;
};

// Whether the status of a listed object is known already and need not be asked for. Empty
// functions: it is known of none.
struct Known {
  std::function<bool(const Pod& listed)> pod{};
  std::function<bool(const RuntimeContainer& listed)> container{};
};

// An event that a runtime sends by itself. The id is a container's or a pod sandbox's.
struct ContainerEvent {
  // kUpdated: another client changed its resources. kRenamed: only its name has changed.
  enum class Kind { kUnknown, kCreated, kStarted, kStopped, kDeleted, kUpdated, kRenamed };
  Kind kind = Kind::kUnknown;
  std::string id{};
  // The name of the container in its pod, if the runtime gives containers names of its own; else
  // empty.
  std::string name{};

  friend auto operator<=>(const ContainerEvent&, const ContainerEvent&) = default;
};

// The calls that the brain makes to the runtime. Asynchronous: `done` runs on the loop's thread,
// never inside the call itself. pkg/cri implements it over the relay's own connection.
class RuntimeClient {
 public:
  virtual ~RuntimeClient() = default;

  // NotFound: no such container (any more). Unavailable: no connection. DeadlineExceeded: no answer
  // in time.
  virtual void UpdateContainer(const ContainerId& id, const ResourceValues& adjustment,
                               std::function<void(Status)> done) = 0;

  // One of several updates; its references are valid only during the call.
  struct Update {
    const ContainerId& id;
    const ResourceValues& adjustment;
  };
  using UpdatesDone = std::function<void(size_t index, const Status& status)>;
  // Sends several updates at once; `done` runs for each of them when it is answered.
  virtual void UpdateContainers(std::span<const Update> updates, UpdatesDone done) {
    const auto shared = std::make_shared<const UpdatesDone>(std::move(done));
    for (size_t i = 0; i < updates.size(); ++i) {
      UpdateContainer(updates[i].id, updates[i].adjustment,
                      [shared, i](const Status& status) { (*shared)(i, status); });
    }
  }

  // Announces updates that belong to what the brain has just decided, and follow soon. A front door
  // that is about to answer the runtime waits, for a limited time, until the returned object is
  // destroyed: updates made before that are part of the answer. Null if it cannot carry updates.
  virtual std::shared_ptr<const void> UpdatesFollow() { return nullptr; }

  // Lists sandboxes and containers, and asks for the verbose status (cgroup parent, resources) of
  // those that are not `known`. Fails if a list fails; objects whose status fails are `unclear`.
  // The functions of `known` run on the loop's thread, before `done`.
  virtual void ListAll(Known known, std::function<void(StatusOr<RuntimeInventory>)> done) = 0;

  // Whether a list may show something new, so that a list before a refusal is worth the time.
  virtual bool ListsTellNews() const { return true; }

  // Whether an update that does not name a value writes it from the runtime's notes.
  virtual bool WritesNotedValues() const { return true; }

  // Whether a container that has exited may be started again, on the CPUs of its last update.
  virtual bool StartsExited() const { return false; }

  // Whether containers may get other names after their creation.
  virtual bool Renames() const { return false; }
};

}  // namespace resmgr
