// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pkg/api/nri.pb.h"
#include "pkg/base/status.h"
#include "pkg/nri/host/container_updates.h"
#include "pkg/nri/host/field_ledger.h"
#include "pkg/nri/host/pristine_container.h"
#include "pkg/nri/host/shown_request.h"

namespace resmgr::nri {

// What the plugins want of one container that is created, merged in the order in which they are
// asked. Each sees the container as those before it have changed it. A field, or an entry of what
// has keys, is set by one plugin; hooks and rules for devices add up (NRI 0.12).
//
// Unlike in other hosts a removal is final, of all that can be removed: it takes away what a plugin
// before has set, and stays in the result for what the container had of itself.
//
// A reply of 4 MiB takes time in proportion to it and to what is merged already. Thread-compatible.
class AdjustmentMerge {
 public:
  explicit AdjustmentMerge(std::shared_ptr<const PristineContainer> pristine)
      : shown_(std::make_shared<ShownRequest>(std::move(pristine))) {}

  // Takes a plugin's reply; `plugin` is its full name. What it wants to evict is not looked at.
  // FailedPrecondition: in conflict with what it or another plugin has set; the message is
  // `plugins "B" and "A" both tried to set FIELD KEY`. InvalidArgument: it updates the container
  // that is created, or has an entry whose key nothing can have. An error changes nothing.
  Status Add(std::string_view plugin, api::CreateContainerResponse reply);

  // What the next plugin is asked, as a message and encoded.
  const api::CreateContainerRequest& request() const { return shown_->Message(); }
  std::string Question() const { return shown_->Question(); }
  const api::Container& container() const { return request().container(); }
  const PristineContainer& pristine() const { return shown_->pristine(); }

  // What all want in sum. Removals are in it by keys that begin with "-". What is there with and
  // without it is replaced; so in maps removals count first. In lists they stand before the new
  // value. Arguments are without the mark that they override others.
  const api::ContainerAdjustment& adjustment() const { return adjustment_; }
  // Of other containers.
  const std::vector<api::ContainerUpdate>& updates() const { return updates_.all(); }

  api::OwningPlugins owners() const { return ledger_.Report(); }
  // Of one container, which plugins know by this id.
  std::vector<OwnedField> owned(std::string_view container_id) const {
    return ledger_.Of(container_id);
  }

  // What validators are asked, but for the plugins that took part.
  api::ValidateContainerAdjustmentRequest Validation() const;

  // Shows the result later, also when this object has been destroyed.
  std::shared_ptr<ShownRequest> shown() const { return shown_; }

 private:
  std::shared_ptr<ShownRequest> shown_;
  api::ContainerAdjustment adjustment_;
  ContainerUpdates updates_;
  FieldLedger ledger_;
};

}  // namespace resmgr::nri
