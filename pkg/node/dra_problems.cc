// SPDX-License-Identifier: Apache-2.0
#include "pkg/node/dra_problems.h"

#include <cstdint>
#include <string>

#include <fmt/format.h>

#include "pkg/base/count_text.h"
#include "pkg/dra/node_devices.h"

namespace resmgr {

Problem HeldWithoutDriver(size_t claims) {
  return {.kind = "plugin",
          .message = fmt::format("the driver for claims is off, and CPUs of {} stay held",
                                 CountText(static_cast<int64_t>(claims), "claim")),
          .objects = {},
          .next = "set dra.Enable to true until the pods with claims have ended"};
}

std::optional<Problem> HeldOfFormerDriver(const HeldClaims& held, const dra::Driver& now) {
  std::string former;
  int64_t claims = 0;
  for (const HeldClaim& one : held.all()) {
    if (now.MayHaveGiven(one.claim)) continue;
    former = one.claim.driver;
    ++claims;
  }
  if (claims == 0) return std::nullopt;
  return Problem{
      .kind = "plugin",
      .message = fmt::format("the driver for claims was {} before, and CPUs of {} stay held",
                             former, CountText(claims, "claim")),
      .objects = {},
      .next = fmt::format("let the driver be {} again (dra.Driver, dra.Compatible) until the pods "
                          "with these claims have ended",
                          former)};
}

std::optional<Problem> NoRoomForDevices(const Machine& machine, DraDevices devices) {
  const size_t left = dra::DevicesLeftOut(machine, devices);
  if (left == 0) return std::nullopt;
  return Problem{.kind = "plugin",
                 .message = fmt::format("a pool has {} devices for claims at most: claims get no "
                                        "CPUs of {} further {}",
                                        dra::kMostNodeDevices, left,
                                        devices == DraDevices::kL3 ? "L3 caches" : "NUMA nodes"),
                 .objects = {},
                 .next = devices == DraDevices::kL3
                             ? "set dra.Devices to numa"
                             : "use these CPUs for containers without claims"};
}

}  // namespace resmgr
