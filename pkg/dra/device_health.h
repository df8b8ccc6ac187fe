// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "pkg/claims/claim.h"
#include "pkg/claims/held_claims.h"
#include "pkg/dra/driver.h"
#include "pkg/grpc/unary_server.h"
#include "pkg/topology/machine.h"

namespace resmgr::dra {

struct DeviceState {
  std::string device{};
  std::string trouble{};  // why the device is not healthy; "": it is healthy

  friend bool operator==(const DeviceState&, const DeviceState&) = default;
};

// Reports to kubelets that watch (DRAResourceHealth v1, v1beta1, v1alpha1) which devices are
// healthy; users see this in the status of their pods. Sends at once, after each change and at each
// Repeat, since a kubelet that gets no report for a while shows the health as unknown. Loop's
// thread only.
class DeviceHealth {
 public:
  // Limit of watchers: one kubelet, and streams of it that have not ended yet.
  static constexpr size_t kMostWatchers = 16;
  // The time after which a kubelet without a report shows the health as unknown.
  static constexpr std::chrono::seconds kTimeout{60};

  // This object must outlive their server.
  UnaryServer::Streams Streams();

  // Sets all devices of the pool. `pool` is "" as long as it is not known, and nothing is sent
  // then.
  void Show(const std::string& pool, std::vector<DeviceState> devices);
  // Sends the present state again.
  void Repeat();
  size_t watchers() const { return watchers_.size(); }

 private:
  void Watch(UnaryServer::Send send);
  std::string Message() const;

  std::string pool_;
  std::vector<DeviceState> devices_;
  std::vector<UnaryServer::Send> watchers_;
};

// The health of the driver's devices: first those at `places`, even if they have no room for
// claims, then those that only claims of this driver name. The latter are devices of a former
// configuration, or of CPUs that were offline when the daemon started; without a report, a kubelet
// would show their health as unknown. A device is unhealthy while all of its CPUs are `offline`, or
// if the machine has no such place and the claim has no CPUs there. Pure.
std::vector<DeviceState> DeviceStates(const Driver& driver, std::span<const ClaimPart> places,
                                      const HeldClaims& held, const Machine& machine,
                                      const CpuSet& offline);

}  // namespace resmgr::dra
