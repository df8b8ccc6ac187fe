// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "pkg/api/nri.pb.h"
#include "pkg/base/status.h"
#include "pkg/model/adjustment.h"
#include "pkg/model/container_details.h"
#include "pkg/nri/host/field_ledger.h"
#include "pkg/nri/host/host_files.h"
#include "pkg/nri/host/pristine_container.h"
#include "pkg/nri/host/runtime_traits.h"
#include "pkg/nri/host/unsupported_policy.h"

namespace resmgr::nri {

// From what NRI plugins want of a container that is created to edits of the request that creates
// it, by the rule that docs/nri-plugins.md and docs/docker-mode.md have for each field: exactly;
// nearly, under the condition that is said there; or not, which refuses the creation or is a
// warning.

struct MappingContext {
  const ContainerDetails& details;        // of the request, with what earlier stages changed
  const PristineContainer& pristine;      // as the first plugin saw it
  const std::vector<OwnedField>& owners;  // of the container (AdjustmentMerge::owned)
  const UnsupportedPolicy& policy;
  const RuntimeTraits& traits;
};

struct MappedAdjustment {
  // The most warnings that are told; further ones are counted.
  static constexpr size_t kMostWarnings = 16;

  Adjustment adjustment;
  // Lines for the log, fit for it: what is left out.
  std::vector<std::string> warnings;
  size_t more_warnings = 0;
  // Where there are any: what has to be asked of the file system, off the loop, before the
  // adjustment is whole (FindOnHost, AddHostFiles).
  HostFiles host_files;
  api::Field rdt_field = api::FIELD_RDT_CLASS;  // where the adjustment has its class from
};

// `wanted` is AdjustmentMerge::adjustment. InvalidArgument: a plugin wants what makes no sense, or
// may not be touched: the kubelet's own annotations (io.kubernetes.*), which it compares with what
// it wants and would create the container anew for. FailedPrecondition: something that the
// request cannot express, and the policy refuses. The message names plugin and field.
StatusOr<MappedAdjustment> MapAdjustment(const api::ContainerAdjustment& wanted,
                                         const MappingContext& context);

// The second half, where there are host_files: `found` is the answer to them. FailedPrecondition:
// the node does not have a device, or has it with another mode or owner; a read-only mount would be
// writable further below; the policy refuses.
Status AddHostFiles(const FoundFiles& found, const MappingContext& context,
                    MappedAdjustment& mapped);

}  // namespace resmgr::nri
