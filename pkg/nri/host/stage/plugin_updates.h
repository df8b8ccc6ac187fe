// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <google/protobuf/repeated_field.h>

#include "pkg/api/nri.pb.h"
#include "pkg/base/status.h"
#include "pkg/log/log.h"
#include "pkg/log/rate_limit.h"
#include "pkg/nri/host/mapping/resource_mapping.h"
#include "pkg/nri/host/mapping/runtime_traits.h"
#include "pkg/nri/host/view/host_view.h"
#include "pkg/pipeline/runtime_access.h"
#include "pkg/sys/lifetime.h"

namespace resmgr::nri {

// Carries out plugins' updates of existing containers, by the daemon's own requests to the runtime.
// CPUs and memory nodes are left out while the active policy decides about them. Loop's thread
// only.
class PluginUpdates {
 public:
  using List = std::vector<api::ContainerUpdate>;

  struct Hooks {
    // Whether the active policy decides about CPUs and memory nodes.
    std::function<bool()> placement_is_owned{};
    // Called when a plugin's CPUs or memory nodes were left out.
    std::function<void()> dropped_placement{};
    // Called with lines about changes that were left out because the CRI cannot express them.
    std::function<void(const HostContainer&, const std::vector<std::string>&)> left_out{};
    // Called before these values are set, and again when the runtime has accepted them. May be
    // empty.
    std::function<void(const ContainerId&, const ResourceValues&, bool accepted)> set{};
  };

  // All three outlive this object.
  PluginUpdates(RuntimeAccess& runtime, HostView& view, const UnsupportedPolicy& unsupported,
                Hooks hooks);

  // Sets the runtime's known properties.
  void SetTraits(const RuntimeTraits& traits) { traits_ = traits; }

  // Replaces containers' ids by those of the inventory, so that plugins that use different ids for
  // one container conflict; unknown containers are removed, as in NRI.
  void Normalize(google::protobuf::RepeatedPtrField<api::ContainerUpdate>& updates) const;

  // Carries out one update for each container. `done` gets the updates that failed, except those
  // that ignore failures. It runs at once if no request is needed.
  void Apply(const List& updates, std::function<void(const List& failed)> done);

 private:
  struct Batch;

  void ApplyOne(const api::ContainerUpdate& update, const std::shared_ptr<Batch>& batch);
  void Tell(const ContainerId& id, const ResourceValues& values, bool accepted);
  void NoteFailure(const HostContainer& container, const Status& why);

  RuntimeAccess& runtime_;
  HostView& view_;
  const UnsupportedPolicy& unsupported_;
  const Hooks hooks_;
  RuntimeTraits traits_;
  Logger& log_;
  RateLimit limit_;
  Lifetime lifetime_;
};

// Removes values that the CRI cannot express (ShortfallsOf) from an update of an existing
// container, so that the rest can be sent and plugins never see values that the runtime did not
// get. Returns one printable line for each removed field. kFailedPrecondition: the policy refuses a
// field; the resources stay unchanged then. Pure function.
StatusOr<std::vector<std::string>> LeaveOutShortfalls(const RuntimeTraits& traits,
                                                      const UnsupportedPolicy& policy,
                                                      api::LinuxResources& resources);

}  // namespace resmgr::nri
