// SPDX-License-Identifier: Apache-2.0
#include "pkg/dra/device_states.h"

#include <algorithm>
#include <string>

#include <fmt/format.h>

#include "pkg/claims/claim_place.h"

namespace resmgr::dra {
namespace {

std::string TroubleAt(const ClaimPlace& place, const CpuSet& offline) {
  if (place.cpus.empty()) return "none of its CPUs is online";
  if (!place.cpus.IsSubsetOf(offline)) return "";
  return fmt::format("all of its CPUs ({}) are offline", place.cpus.ToString());
}

}  // namespace

std::vector<DeviceState> DeviceStates(const Driver& driver, std::span<const ClaimPart> places,
                                      const HeldClaims& held, const Machine& machine,
                                      const CpuSet& offline) {
  std::vector<DeviceState> states;
  for (const ClaimPart& place : places) {
    const StatusOr<ClaimPlace> found = PlaceOf(place, machine);
    if (!found.ok()) continue;
    states.push_back({.device = driver.NameAt(place), .trouble = TroubleAt(*found, offline)});
  }
  for (const HeldClaim& claim : held.all()) {
    if (!driver.MayHaveGiven(claim.claim)) continue;
    for (size_t at = 0; at < claim.parts.size(); ++at) {
      const ClaimPart& part = claim.claim.parts[at];
      if (std::ranges::find(states, part.device, &DeviceState::device) != states.end()) continue;
      const StatusOr<ClaimPlace> found = PlaceOf(part, machine);
      DeviceState& state = states.emplace_back(DeviceState{.device = part.device});
      if (found.ok()) {
        state.trouble = TroubleAt(*found, offline);
      } else if (claim.parts[at].placement.exclusive.empty()) {
        state.trouble = Message(found.status());
      }
    }
  }
  return states;
}

}  // namespace resmgr::dra
