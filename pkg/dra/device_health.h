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
  std::string trouble{};  // why it is not healthy; "": it is

  friend bool operator==(const DeviceState&, const DeviceState&) = default;
};

// Tells kubelets that watch (DRAResourceHealth v1, v1beta1, v1alpha1) which devices are healthy,
// which users see in the status of their pods: at once, after each change, and again at each
// repetition, since a kubelet that hears nothing for a while takes the health for unknown. Loop's
// thread only.
class DeviceHealth {
 public:
  // Watchers at a time: one kubelet, and the streams that it has not ended yet.
  static constexpr size_t kMostWatchers = 16;
  // A kubelet takes the health for unknown after so long without news.
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

// The health of the driver's devices: first of those at `places`, also without room for claims,
// then of those that only claims of this driver have. These are devices of a former configuration,
// or of CPUs that were offline when the daemon started; if they were not reported, a kubelet would
// show their health as unknown. A device is unhealthy while all of its CPUs are `offline`, and if
// the machine lacks its place and its claim has no CPUs there. Pure.
std::vector<DeviceState> DeviceStates(const Driver& driver, std::span<const ClaimPart> places,
                                      const HeldClaims& held, const Machine& machine,
                                      const CpuSet& offline);

}  // namespace resmgr::dra
