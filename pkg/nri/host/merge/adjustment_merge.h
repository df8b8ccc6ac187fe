// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <google/protobuf/repeated_field.h>

#include "pkg/api/nri.pb.h"
#include "pkg/base/status.h"
#include "pkg/nri/host/merge/field_ledger.h"
#include "pkg/nri/host/merge/update_merge.h"

namespace resmgr::nri {

namespace api = ::nri::pkg::api::v1alpha1;

// A new container without plugins' changes. It may have hundreds of variables, and its message is
// seldom needed, so the message is built anew for each use.
class PristineContainer {
 public:
  virtual ~PristineContainer() = default;

  virtual const api::PodSandbox& pod() const = 0;
  // The id by which plugins know it.
  virtual const std::string& id() const = 0;
  virtual api::Container Make() const = 0;
  // A message with id, name and seccomp profile only.
  virtual api::Container MakeOutline() const = 0;
  // An encoded CreateContainerRequest with the pod and this container.
  virtual std::string Question() const = 0;
};

// The request to plugins about a new container, with the changes of the former ones. It is built
// when a plugin or validator is asked, so usually not again after the last plugin.
// Thread-compatible.
class ShownRequest {
 public:
  explicit ShownRequest(std::shared_ptr<const PristineContainer> pristine)
      : pristine_(std::move(pristine)) {}

  // Adds one plugin's changes, whose claims were granted.
  void Add(api::ContainerAdjustment changes);

  const PristineContainer& pristine() const { return *pristine_; }
  api::CreateContainerRequest& Message();
  // The encoded request.
  std::string Question();

 private:
  const std::shared_ptr<const PristineContainer> pristine_;
  std::optional<api::CreateContainerRequest> request_;
  google::protobuf::RepeatedPtrField<std::string>
      args_before_;                                // the container's arguments before any change
  std::vector<api::ContainerAdjustment> to_show_;  // changes that request_ does not have yet
};

// Merges the changes that plugins want of one new container, in the order in which the plugins are
// asked. Each plugin sees the container with the changes of those before it. Only one plugin may
// set a field, or a keyed entry of it; hooks and rules for devices add up (NRI 0.12).
//
// A removal is final, unlike in other hosts: it removes the value of an earlier plugin, and also
// stays in the result, because the container itself may have the value.
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

  // The sum of all plugins' changes. A key that begins with "-" is a removal; if the same key is
  // also present without "-", the entry is replaced. In lists, the removal precedes the new value;
  // in maps, apply removals first. Arguments do not include NRI's mark for overriding others.
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
