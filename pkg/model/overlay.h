// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "pkg/model/adjustment.h"
#include "pkg/model/container_details.h"
#include "pkg/model/create_request.h"

namespace resmgr {

// Shows a request as it will be once what stages changed so far is in it, for a stage that is asked
// after them. Classes of block I/O and RDT, which a request has no field for, are left out.
void Overlay(const Adjustment& so_far, CreateRequest& create);
void Overlay(const Adjustment& so_far, ContainerDetails& details);
// The same details where nothing of them changes.
std::shared_ptr<const ContainerDetails> Overlaid(const Adjustment& so_far,
                                                 std::shared_ptr<const ContainerDetails> details);

}  // namespace resmgr
