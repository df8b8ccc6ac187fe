// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include <google/protobuf/repeated_field.h>

#include "pkg/nri/host/merge/field_ledger.h"

namespace resmgr::nri {

// One plugin's edits of a new container: claimed first, as a whole, then added to the sum of all
// plugins' edits, and shown to the next one. Refers to the reply. Immutable.
class ReplyEdits {
 public:
  explicit ReplyEdits(const api::ContainerAdjustment& reply);
  ~ReplyEdits();
  ReplyEdits(const ReplyEdits&) = delete;
  ReplyEdits& operator=(const ReplyEdits&) = delete;

  // kFailedPrecondition: another plugin has set a field. kInvalidArgument: an impossible key. After
  // an error some fields are claimed; the caller must undo the ledger.
  Status Claim(const FieldLedger::Claimant& claimant) const;

  // Both may be called only after Claim has succeeded. `args_before` are the container's arguments
  // before any plugin changed them.
  void AddTo(api::ContainerAdjustment& merged) const;
  void ShowIn(const google::protobuf::RepeatedPtrField<std::string>& args_before,
              api::Container& container) const;

 private:
  struct Lists;

  const api::ContainerAdjustment& reply_;
  std::unique_ptr<const Lists> lists_;
};

// Whether any Linux resource is set. Rules for devices have no owners: they add up.
bool AnySet(const api::LinuxResources& resources);
Status ClaimResources(const api::LinuxResources& resources, const FieldLedger::Claimant& claimant);
// Adds resources to the sum of all plugins' wishes. The claims were granted, which makes page sizes
// unique. Takes time in proportion to `wanted` alone, so that many small updates of one container
// cost no more.
void AddResources(const api::LinuxResources& wanted, api::LinuxResources& merged);
// Sets the wanted resources in those of a container.
void OverlayResources(const api::LinuxResources& wanted, api::LinuxResources& resources);

// Clears a field that has no keys; NONE stands for the rules for devices.
void ClearField(api::Field field, api::LinuxResources& resources);

}  // namespace resmgr::nri
