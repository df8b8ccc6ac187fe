// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pkg/api/nri.pb.h"
#include "pkg/base/status.h"
#include "pkg/nri/host/merge/container_updates.h"
#include "pkg/nri/host/merge/field_ledger.h"
#include "pkg/nri/host/merge/pristine_container.h"
#include "pkg/nri/host/merge/shown_request.h"

namespace resmgr::nri {

// Merges the changes that plugins want of one new container, in the order in which the plugins are
// asked. Each sees the container with the changes of those before it. A field, or a keyed entry of
// it, is set by one plugin only; hooks and rules for devices add up (NRI 0.12).
//
// Unlike in other hosts every removal is final: it removes a former plugin's value, and stays in
// the result because of the container's original value.
//
// A reply of 4 MiB takes time in proportion to it and to the merged state. Thread-compatible.
class AdjustmentMerge {
 public:
  explicit AdjustmentMerge(std::shared_ptr<const PristineContainer> pristine)
      : shown_(std::make_shared<ShownRequest>(std::move(pristine))) {}

  // Takes a plugin's reply; `plugin` is its full name. Evictions in it are ignored.
  // kFailedPrecondition: it conflicts with a value that it or another plugin has set; the message
  // is `plugins "B" and "A" both tried to set FIELD KEY`. kInvalidArgument: it updates the
  // container that is created, or has an entry with an impossible key. An error changes nothing.
  Status Add(std::string_view plugin, api::CreateContainerResponse reply);

  // The request to the next plugin, as a message and encoded.
  const api::CreateContainerRequest& request() const { return shown_->Message(); }
  std::string Question() const { return shown_->Question(); }
  const api::Container& container() const { return request().container(); }
  const PristineContainer& pristine() const { return shown_->pristine(); }

  // The sum of all plugins' changes. Keys that begin with "-" are removals. A key present both with
  // and without "-" is replaced; in maps apply removals first. In lists they precede the new value.
  // Arguments are without the mark that they override others.
  const api::ContainerAdjustment& adjustment() const { return adjustment_; }
  // The updates of other containers.
  const std::vector<api::ContainerUpdate>& updates() const { return updates_.all(); }

  api::OwningPlugins owners() const { return ledger_.Report(); }
  // The owned fields of one container, which plugins know by this id.
  std::vector<OwnedField> owned(std::string_view container_id) const {
    return ledger_.Of(container_id);
  }

  // The request to validators, except for the list of plugins that took part.
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
