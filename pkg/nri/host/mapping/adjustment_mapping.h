// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "pkg/api/nri.pb.h"
#include "pkg/base/status.h"
#include "pkg/model/adjustment.h"
#include "pkg/model/container_details.h"
#include "pkg/nri/host/mapping/host_files.h"
#include "pkg/nri/host/mapping/resource_mapping.h"
#include "pkg/nri/host/mapping/runtime_traits.h"
#include "pkg/nri/host/merge/adjustment_merge.h"
#include "pkg/nri/host/merge/field_ledger.h"

namespace resmgr::nri {

// Maps the changes that NRI plugins want of a new container to edits of the request that creates
// it, by the rule that docs/nri-plugins.md and docs/docker-mode.md have for each field: exactly;
// approximately, under the documented condition; or not at all, which refuses the creation or is a
// warning.

struct MappingContext {
  const ContainerDetails& details;        // of the request, with earlier stages' changes
  const PristineContainer& pristine;      // as the first plugin sees it
  const std::vector<OwnedField>& owners;  // of the container's fields (AdjustmentMerge::owned)
  const UnsupportedPolicy& policy;
  const RuntimeTraits& traits;
};

struct MappedAdjustment {
  // Limit of reported warnings; further ones are left out.
  static constexpr size_t kMostWarnings = 16;

  Adjustment adjustment;
  // Printable lines for the log about changes that are left out.
  std::vector<std::string> warnings;
  // If not empty, the adjustment is not complete: FindHostFiles must look these up, off the loop,
  // and AddHostFiles must add the result.
  HostFiles host_files;
  api::Field rdt_field = api::FIELD_RDT_CLASS;  // the source of the RDT class
};

// `wanted` is AdjustmentMerge::adjustment. kInvalidArgument: a plugin wants an invalid value, or
// changes a protected one: the kubelet compares its own annotations (io.kubernetes.*) with its wish
// and would create the container anew. kFailedPrecondition: the request cannot express a change,
// and the policy refuses. The message names plugin and field.
StatusOr<MappedAdjustment> MapAdjustment(const api::ContainerAdjustment& wanted,
                                         const MappingContext& context);

// The second half of the mapping, needed if there are host_files; `found` is the result for them.
// kFailedPrecondition: the policy refuses, since the node lacks a device or has it with another
// mode or owner, or since a read-only mount would be writable further below.
Status AddHostFiles(const FoundFiles& found, const MappingContext& context,
                    MappedAdjustment& mapped);

}  // namespace resmgr::nri
