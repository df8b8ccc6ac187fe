// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "pkg/model/adjustment.h"
#include "pkg/model/container_details.h"
#include "pkg/model/create_request.h"

namespace resmgr {

// Shows a request with the changes of earlier stages, for the stage that is asked next. Leaves out
// classes of block I/O and RDT, for which a request has no field.
void Overlay(const Adjustment& so_far, CreateRequest& create);
void Overlay(const Adjustment& so_far, ContainerDetails& details);
// Returns the same object if no detail changes.
std::shared_ptr<const ContainerDetails> Overlaid(const Adjustment& so_far,
                                                 std::shared_ptr<const ContainerDetails> details);

}  // namespace resmgr
