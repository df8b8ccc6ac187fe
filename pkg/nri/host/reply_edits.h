// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include <google/protobuf/repeated_field.h>

#include "pkg/nri/host/field_ledger.h"

namespace resmgr::nri {

// What one plugin's reply changes of a container that is created: claimed first, as a whole, then
// added to what all plugins want, and shown to the next one. Refers to the reply. Immutable.
class ReplyEdits {
 public:
  explicit ReplyEdits(const api::ContainerAdjustment& reply);
  ~ReplyEdits();
  ReplyEdits(const ReplyEdits&) = delete;
  ReplyEdits& operator=(const ReplyEdits&) = delete;

  // FailedPrecondition: another plugin has set it. InvalidArgument: a key that nothing can have.
  // Some is claimed then; the ledger is to be undone.
  Status Claim(const FieldLedger::Claimant& claimant) const;

  // Only where the claims were granted. `args_before` are those that no plugin has changed.
  void AddTo(api::ContainerAdjustment& merged) const;
  void ShowIn(const google::protobuf::RepeatedPtrField<std::string>& args_before,
              api::Container& container) const;

 private:
  struct Lists;

  const api::ContainerAdjustment& reply_;
  std::unique_ptr<const Lists> lists_;
};

}  // namespace resmgr::nri
